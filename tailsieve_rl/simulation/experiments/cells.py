"""A cell of the paper's tables: one model, one workload, N groups on R replicas; and policies measured in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth
from tailsieve_rl.routing.plan import Pool
from tailsieve_rl.routing.policies import RoutingPolicy, Setup
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
    def draft_depths(self) -> tuple[float | None, float | None]:
        """The median draft depths of the tail and the bulk pool; None where a depth follows the batch size."""
        plans = [step.outcome.plan for step in self.steps]
        tail, bulk = (_median([plan.depth_of(pool) for plan in plans]) for pool in Pool)
        return tail, bulk

    @property
    def wasted_fraction(self) -> float:
        """Aborted tokens as a share of all."""
        aborted = sum(step.outcome.aborted_tokens for step in self.steps)
        return aborted / (aborted + sum(step.outcome.consumed_tokens for step in self.steps))


def _median(depths: Sequence[Depth]) -> float | None:
    numbers = [depth for depth in depths if isinstance(depth, int)]
    return float(np.median(numbers)) if len(numbers) == len(depths) else None


def measure(
    policy: RoutingPolicy,
    setup: Setup,
    workload: Workload,
    model: DecodeModel,
    converge: int,
    count: int,
    records: bool = False,
) -> Measured:
    """Run a policy and keep the steps after its first ones, without the last, which leaves nothing over.

    Args:
        policy: what routes.
        setup: N, n, R.
        workload: of one seed; policies measured on the same one see the same prompts and lengths.
        model: of every replica.
        converge: steps that are not measured.
        count: steps that are.
        records: whether the policy sees what each request did, which estimates of tau or of acceptance need.
    """
    run = Simulation(setup, workload, model, policy, records=records)
    steps = list(run.steps(converge + count + 1))[converge:-1]
    return Measured(float(np.mean([step.outcome.gen_time_s for step in steps])), tuple(steps))
