"""The regimes of Appendix E: a stable allocation, a change of q, and policies that drift."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Controller, Fixed
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.composition import AS_RUN, BY_PROMPT, Floats, deviations, population
from tailsieve_rl.simulation.experiments.scripted import Alternating
from tailsieve_rl.simulation.experiments.selector import selector_terms
from tailsieve_rl.simulation.experiments.statistics import mean_of
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import Workload

MODEL = profile("qwen3.5-4b")
SETUP = Setup(groups=64, responses=RESPONSES, replicas=8)
M, Q = 2, 4
"""Tail replicas, and the q that the paper converges to (section 4.4)."""

BATCH = 100
"""Steps of a batch mean: many times the two steps over which neighbouring batches share prompts."""

PERIOD, WINDOW = 8, 5
"""Steps between two changes of q, and those after which a batch certainly is settled: it depends on three."""

SETTLED = 0.01
"""A step of a transition is settled when it is this near to the stable level, or not told apart from it."""

Regime = dict[str, Any]


def stable(name: str, workload: Workload, q: int, steps: int) -> list[Regime]:
    """A fixed (q, m), measured as run and by generations that decided nothing; the selector's own terms beside it.

    Args:
        name: of the workload.
        workload: whose policy does not change.
        q: groups.
        steps: a multiple of BATCH.
    """
    of, at = population(workload), Allocation(q, M)
    outcomes = _outcomes(workload, Fixed(at), steps)
    terms = selector_terms(workload, 1, at, SETUP, MODEL, of)
    found = []
    for label, generations in (("as run", AS_RUN), ("selected by prompt", BY_PROMPT)):
        shifts = deviations(outcomes, workload, of, generations)
        batches = shifts.reshape(-1, BATCH, shifts.shape[-1]).mean(axis=1)
        regime = {"name": f"stable, {name}, q = {q}, {label}", "settled_after_steps": 0, **_stated(batches)}
        found.append(regime | {"q": q, "steps": steps, "batch_means": batches[:, 0].tolist()})
    found[0] |= {"predicted": terms.bias.tolist(), "bound": terms.bound.tolist()}
    return found


def transition(workload: Workload, change: int, cycles: int) -> list[Regime]:
    """q to q + D and back, again and again, aligned at the changes; `bias` is that of the step of the change.

    Args:
        workload: whose policy does not change.
        change: D, groups.
        cycles: changes in either direction.
    """
    controller = Alternating(Q, Q + change, M, PERIOD)
    outcomes = _outcomes(workload, controller, (2 * cycles + 1) * PERIOD)[PERIOD:]
    shifts = deviations(outcomes, workload, population(workload))
    both = shifts.reshape(cycles, 2, PERIOD, shifts.shape[-1])
    return [
        _transition(f"increase, D = {change}", [Q, Q + change], both[:, 0]),
        _transition(f"decrease, D = {change}", [Q + change, Q], both[:, 1]),
    ]


def drifting(name: str, workloads: Sequence[Workload], wanted: Sequence[int], sampled: Sequence[int]) -> Regime:
    """Bias at a stable allocation while the policy changes, beside epsilon + eta.

    Args:
        name: of the workload.
        workloads: prompt streams of it.
        wanted: steps whose bias is averaged.
        sampled: those of them at which epsilon and eta are estimated.
    """
    at, of = Allocation(Q, M), population(workloads[0])
    biases = []
    for workload in workloads:
        outcomes = _outcomes(workload, Fixed(at), max(wanted))
        biases.append(deviations([outcomes[step - 1] for step in wanted], workload, of).mean(axis=0))
    terms = [selector_terms(workloads[0], step, at, SETUP, MODEL, of) for step in sampled]

    def averaged(of_terms: Callable[[Any], Floats]) -> list[float]:
        return np.mean([of_terms(term) for term in terms], axis=0).tolist()

    return {
        "name": name,
        "settled_after_steps": 0,
        **_stated(np.array(biases)),
        "sampled_steps": list(sampled),
        "predicted": averaged(lambda term: term.bias),
        "epsilon": averaged(lambda term: term.epsilon),
        "eta": averaged(lambda term: term.eta),
        "bound": averaged(lambda term: term.bound),
    }


def _outcomes(workload: Workload, controller: Controller, count: int) -> list[StepOutcome]:
    """Steps 1 to `count`, without the warm-up and the last one, which leaves nothing over."""
    simulation = Simulation(SETUP, workload, MODEL, TwoPool(controller))
    return [step.outcome for step in simulation.steps(count + 1)][:-1]


def _transition(name: str, q: list[int], shifts: Floats) -> Regime:
    series = [_stated(shifts[:, offset]) for offset in range(PERIOD)]
    level = float(shifts[:, WINDOW:, 0].mean())
    late = [offset for offset, at in enumerate(series[:WINDOW]) if _apart(at, level)]
    total = mean_of((shifts[:, :WINDOW, 0] - level).sum(axis=1))
    return {
        "name": name,
        **series[0],
        "settled_after_steps": max(late, default=-1) + 1,
        "q": q,
        "stable_level": level,
        "sum": {"bias": total.value, "ci95": total.interval},
        "series": series,
    }


def _apart(at: Regime, level: float) -> bool:
    low, high = at["ci95"]
    return abs(at["bias"] - level) > SETTLED and not low <= level <= high


def _stated(repeats: Floats) -> Regime:
    """The mean's bias, relative, and each interval's, as a share of all responses; over (repeats, 1 + intervals)."""
    means = [mean_of(column) for column in repeats.T]
    return {
        "bias": means[0].value,
        "ci95": means[0].interval,
        "intervals": [{"bias": mean.value, "ci95": mean.interval} for mean in means[1:]],
    }
