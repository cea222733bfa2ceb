"""Response lengths of an endless prompt stream: synthetic, drifting, or resampled from a trace."""

from tailsieve_rl.simulation.workloads.presets import (
    WORKLOADS,
    code_workload,
    kodcode_like,
    light_tail,
    math_workload,
    uniform_lengths,
)
from tailsieve_rl.simulation.workloads.synthetic import Synthetic, Weights
from tailsieve_rl.simulation.workloads.workload import Workload

__all__ = [
    "WORKLOADS",
    "Synthetic",
    "Weights",
    "Workload",
    "code_workload",
    "kodcode_like",
    "light_tail",
    "math_workload",
    "uniform_lengths",
]
