"""A cell of the paper's tables: one model, one workload, N groups on R replicas; and policies measured in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.tuning import largest_q, spread
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool
from tailsieve_rl.simulation.run import SimulatedStep, Simulation
from tailsieve_rl.simulation.workloads import Workload

RESPONSES = 8
"""n of every experiment of the paper."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A policy in a cell, one prompt stream.

    Attributes:
        step_s: mean makespan of the measured steps, seconds.
        steps: the measured steps.
    """

    step_s: float
    steps: tuple[SimulatedStep, ...]

    @property
    def allocation(self) -> Allocation:
        """The median q and m of the measured steps."""
        plans = [step.outcome.plan for step in self.steps]
        return Allocation(int(np.median([p.q for p in plans])), int(np.median([p.m for p in plans])))

    @property
    def wasted_fraction(self) -> float:
        """Aborted tokens as a share of all."""
        aborted = sum(step.outcome.aborted_tokens for step in self.steps)
        return aborted / (aborted + sum(step.outcome.consumed_tokens for step in self.steps))


def measure(
    policy: RoutingPolicy, setup: Setup, workload: Workload, model: DecodeModel, converge: int, count: int
) -> Measured:
    """Run a policy and keep the steps after its first ones, without the last, which leaves nothing over.

    Args:
        policy: what routes.
        setup: N, n, R.
        workload: of one seed; policies measured on the same one see the same prompts and lengths.
        model: of every replica.
        converge: steps that are not measured.
        count: steps that are.
    """
    steps = list(Simulation(setup, workload, model, policy).steps(converge + count + 1))[converge:-1]
    return Measured(float(np.mean([step.outcome.gen_time_s for step in steps])), tuple(steps))


def static_step_s(
    at: Allocation, setup: Setup, workloads: Sequence[Workload], model: DecodeModel, count: int, converge: int = 1
) -> list[float]:
    """Mean step time of a fixed pair on each workload, seconds; arguments as of `measure`."""
    policy = TwoPool(Fixed(at))
    return [measure(policy, setup, workload, model, converge, count).step_s for workload in workloads]


def static_grid(setup: Setup) -> list[Allocation]:
    """The static allocations that the best one is looked for in: (0, 0), every m, and q ever farther apart."""
    splits = spread(1, setup.replicas - 1, exact=16)
    return [UNIFORM, *(Allocation(q, m) for m in splits for q in spread(1, largest_q(setup), exact=10))]


def best_static(
    setup: Setup, workloads: Sequence[Workload], model: DecodeModel, count: int, finalists: int = 5
) -> tuple[Allocation, Mapping[Allocation, list[float]]]:
    """The static pair with the least mean step time, and step times of the finalists by workload.

    All pairs run on the first workload; the best ones run on all of them, so that luck does not choose.
    """
    first = {at: static_step_s(at, setup, workloads[:1], model, count)[0] for at in static_grid(setup)}
    near = sorted(first, key=lambda at: first[at])[:finalists]
    times = {at: static_step_s(at, setup, workloads, model, count) for at in near}
    return min(times, key=lambda at: float(np.mean(times[at]))), times
