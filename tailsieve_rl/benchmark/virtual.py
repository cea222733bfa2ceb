"""A cell in virtual time: the backend "simulated", and what stands beside emulated measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.benchmark.cell import Round, Rounds
from tailsieve_rl.config.rollout_only import RolloutOnlySettings
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.plan import Pool, StepPlan
from tailsieve_rl.routing.policies import Setup, default_allocation
from tailsieve_rl.routing.policies.held import Held
from tailsieve_rl.routing.policies.named import BASELINE, SCHEDULES, named_policy
from tailsieve_rl.simulation.experiments.static import best_static, static_step_s
from tailsieve_rl.simulation.run import SimulatedStep, Simulation
from tailsieve_rl.simulation.workloads import Workload


@dataclass(frozen=True, slots=True)
class VirtualCell:
    """One model with one workload.

    Attributes:
        setup: N, n, R.
        workload: of response lengths.
        model: of every replica.
        reserve: position of the warm-up's first prompt in the stream.
    """

    setup: Setup
    workload: Workload
    model: DecodeModel
    reserve: int

    def rounds(self, compared: RolloutOnlySettings) -> Rounds:
        """Every policy's measured steps. Those that adapt estimate tau online, as in training."""
        return {name: self._measured(name, compared) for name in compared.policies}

    def best_static_s(self, compared: RolloutOnlySettings) -> float:
        """Mean time of the measured steps at the fixed (q, m) that is best in hindsight, seconds."""
        steps = (self.setup, [self.workload], self.model, compared.rounds, max(1, compared.converge))
        return static_step_s(best_static(*steps), *steps)[0]

    def bound_s(self, compared: RolloutOnlySettings) -> float:
        """No routing of the baseline's responses is faster: the longest of each step alone; mean, seconds."""
        steps = self._steps(BASELINE, compared)
        longest = [max(max(group.lengths) for group in step.outcome.consumed) for step in steps]
        return float(np.mean(longest) * self.model.tau(1))

    def _measured(self, name: str, compared: RolloutOnlySettings) -> list[Round]:
        outcomes = [step.outcome for step in self._steps(name, compared)]
        return [Round(o.gen_time_s, o.plan.q, o.plan.m, o.wasted_fraction, _depths(o.plan)) for o in outcomes]

    def _steps(self, name: str, compared: RolloutOnlySettings) -> Sequence[SimulatedStep]:
        model = self.model if name == "graded_oracle" or name in SCHEDULES else None
        adapting = named_policy(name, self.setup, default_allocation(self.setup), model, max(self.model.depths))
        policy = Held(adapting, compared.converge)
        run = Simulation(self.setup, self.workload, self.model, policy, records=True, reserve=self.reserve)
        return list(run.steps(compared.last + 1))[compared.converge : -1]


def _depths(plan: StepPlan) -> tuple[int | None, int | None]:
    tail, bulk = (plan.depth_of(pool) for pool in (Pool.TAIL, Pool.BULK))
    return (tail if isinstance(tail, int) else None, bulk if isinstance(bulk, int) else None)
