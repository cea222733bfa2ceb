"""Response lengths of an endless prompt stream: synthetic, drifting, or resampled from a trace."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from tailsieve_rl.simulation.workloads.coarse import Coarse
from tailsieve_rl.simulation.workloads.drift import Drift, Drifting
from tailsieve_rl.simulation.workloads.math_drifts import math_growing, math_shrinking, math_swinging
from tailsieve_rl.simulation.workloads.presets import (
    code_workload,
    kodcode_like,
    light_tail,
    math_workload,
    uniform_lengths,
)
from tailsieve_rl.simulation.workloads.synthetic import Synthetic, Weights
from tailsieve_rl.simulation.workloads.tail_strength import tail_strength
from tailsieve_rl.simulation.workloads.traces import TraceWorkload, sky_t1, trace_workload
from tailsieve_rl.simulation.workloads.workload import Workload

WORKLOADS: Mapping[str, Callable[[int, int], Workload]] = MappingProxyType(
    {
        "math": math_workload,
        "math_stepwise": partial(math_workload, evolving=False),
        "code_stepwise": partial(code_workload, evolving=False),
        "math_growing": math_growing,
        "math_shrinking": math_shrinking,
        "math_swinging": math_swinging,
        "code": code_workload,
        "kodcode_like": kodcode_like,
        "sky_t1": sky_t1,
        "tail_weak": partial(tail_strength, "weak"),
        "tail_real": partial(tail_strength, "real"),
        "tail_strong": partial(tail_strength, "strong"),
        "light_tail": light_tail,
        "uniform_lengths": uniform_lengths,
    }
)
"""Name -> factory of (seed, responses). Of the step-wise ones every step is like step 0, as in the paper's 4.2."""


def named_workload(name: str, seed: int, responses: int) -> Workload:
    """A workload by its name, or the one of a trace file by its path (see `trace_workload`).

    Raises:
        ValueError: if it is neither, or the file cannot be used.
    """
    if name in WORKLOADS:
        return WORKLOADS[name](seed, responses)
    if not Path(name).is_file():
        raise ValueError(f"must be a trace file, or one of {', '.join(WORKLOADS)}")
    return trace_workload(name, seed, responses)


__all__ = [
    "WORKLOADS",
    "Coarse",
    "Drift",
    "Drifting",
    "Synthetic",
    "TraceWorkload",
    "Weights",
    "Workload",
    "code_workload",
    "kodcode_like",
    "light_tail",
    "math_growing",
    "math_shrinking",
    "math_swinging",
    "math_workload",
    "named_workload",
    "sky_t1",
    "tail_strength",
    "trace_workload",
    "uniform_lengths",
]
