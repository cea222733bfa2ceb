"""The math workload under training that changes its lengths: what a controller has to follow."""

from tailsieve_rl.simulation.workloads.drift import Drift, Drifting, in_turn, slowly
from tailsieve_rl.simulation.workloads.presets import math_workload
from tailsieve_rl.simulation.workloads.tail_strength import MEDIAN, RATIOS, stretch

TRAINING_STEPS = 200
"""Steps over which lengths change slowly. An estimate of a run of the paper's kind."""

SWING_STEPS = 40
"""Steps between abrupt changes of the tail: longer than a controller needs to settle, and short enough for several."""


def math_growing(seed: int, responses: int = 8) -> Drifting:
    """Lengths double over the run, as reasoning gets longer under a reward for correctness alone."""
    schedule = slowly(Drift(), Drift(scale=2.0), TRAINING_STEPS)
    return Drifting(math_workload(seed, responses, evolving=False), schedule, MEDIAN, "growing")


def math_shrinking(seed: int, responses: int = 8) -> Drifting:
    """Lengths fall to six tenths over the run, as under an overlength penalty."""
    schedule = slowly(Drift(), Drift(scale=0.6), TRAINING_STEPS)
    return Drifting(math_workload(seed, responses, evolving=False), schedule, MEDIAN, "shrinking")


def math_swinging(seed: int, responses: int = 8) -> Drifting:
    """The tail is real, weak, real and strong in turn (A.5), abruptly: a stress case, no training does that."""
    drifts = [Drift(stretch=stretch(RATIOS[name])) for name in ("real", "weak", "real", "strong")]
    return Drifting(math_workload(seed, responses, evolving=False), in_turn(drifts, SWING_STEPS), MEDIAN, "swinging")
