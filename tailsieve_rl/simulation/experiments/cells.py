"""A cell of the paper's tables: one model, one workload, N groups on R replicas; and policies measured in it."""

from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import DecodeModel
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
