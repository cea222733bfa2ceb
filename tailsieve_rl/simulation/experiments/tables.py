"""Cells of the paper's tables, measured: policies side by side on the same prompt streams."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool
from tailsieve_rl.simulation.experiments.cells import RESPONSES, Measured, measure
from tailsieve_rl.simulation.experiments.static import best_static
from tailsieve_rl.simulation.experiments.statistics import speedup
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.workloads import Workload, code_workload, math_workload

Policies = Callable[[Setup, DecodeModel], Mapping[str, RoutingPolicy]]

CONVERGE = 16
"""Steps before the measured ones: q moves by N / 32 every second step, from N / 16 to N / 4 in twelve."""
MEASURED = 12

FACTORIES: Mapping[str, Callable[..., Workload]] = MappingProxyType({"math": math_workload, "code": code_workload})


def measure_cell(name: str, workload: str, groups: int, seeds: range, policies: Policies) -> dict[str, Any]:
    """Policies in a cell, each on every prompt stream, as results have it (design.md, section 5).

    Args:
        name: of the decode profile.
        workload: one of FACTORIES.
        groups: N.
        seeds: of the prompt streams.
        policies: what is compared, the baseline `uniform` among it; those that adapt get the profile.
    """
    model, setup = profile(name), Setup(groups, RESPONSES, replicas(name))
    streams = [FACTORIES[workload](seed, RESPONSES, evolving=False) for seed in seeds]
    runs = {
        key: [measure(policy, setup, stream, model, CONVERGE, MEASURED) for stream in streams]
        for key, policy in policies(setup, model).items()
    }
    static = best_static(setup, streams, model, MEASURED, CONVERGE)
    best = [measure(TwoPool(Fixed(static)), setup, stream, model, CONVERGE, MEASURED).step_s for stream in streams]
    baseline_s = [measured.step_s for measured in runs["uniform"]]
    return {
        "model": name,
        "workload": workload,
        "groups": groups,
        "replicas": setup.replicas,
        "best_static": {"q": static.q, "m": static.m},
        "best_static_s": float(np.mean(best)),
        "bound_s": float(np.mean([_bound_s(measured, model) for measured in runs["uniform"]])),
        "policies": {key: entry(measured, baseline_s) for key, measured in runs.items()},
    }


def entry(runs: Sequence[Measured], baseline_s: Sequence[float]) -> dict[str, Any]:
    """A policy in a cell, as results have it: means over prompt streams, speedup over the baseline by stream."""
    times = [measured.step_s for measured in runs]
    gain = speedup(baseline_s, times)
    return {
        "step_s": float(np.mean(times)),
        "speedup": gain.value,
        "ci95": gain.interval,
        "q": float(np.mean([measured.allocation.q for measured in runs])),
        "m": float(np.mean([measured.allocation.m for measured in runs])),
        "draft_depth_tail": _mean([measured.draft_depths[0] for measured in runs]),
        "draft_depth_bulk": _mean([measured.draft_depths[1] for measured in runs]),
        "step_s_by_stream": times,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """None if one of them is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _bound_s(measured: Measured, model: DecodeModel) -> float:
    """The longest consumed response of each step, alone on a replica: no routing can be faster, mean of the steps."""
    longest = [max(max(group.lengths) for group in step.outcome.consumed) for step in measured.steps]
    return float(np.mean(longest) * model.tau(1))
