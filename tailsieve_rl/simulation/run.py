"""Many steps in virtual time: any policy, with warm-up, cutoff, regeneration and transitions as in a real run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import StepPlan, fresh_groups, plan_step
from tailsieve_rl.routing.policies import RoutingPolicy, Setup
from tailsieve_rl.simulation.executor import Ints, run_step
from tailsieve_rl.simulation.workloads import Workload

RESERVE = 1 << 40
"""Where the warm-up's prompts begin in the stream, unless a run says otherwise: no run gets there."""


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """One step of a run, and what the policy had reported before it (predictions, proposals)."""

    outcome: StepOutcome
    report: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A run in virtual time.

    Attributes:
        setup: N, n, R.
        workload: lengths by prompt, attempt and step: policies that are compared share it.
        bulk: decode model of the bulk pool, and of every replica under uniform routing.
        policy: what decides.
        tail: decode model of the tail pool; None: the same.
        depths: (tail, bulk) draft depths.
        reserve: position of the warm-up's first prompt.
        records: whether outcomes hold a record of every response (needed by the online decode model).
    """

    setup: Setup
    workload: Workload
    bulk: DecodeModel
    policy: RoutingPolicy
    tail: DecodeModel | None = None
    depths: tuple[int, int] = (0, 0)
    records: bool = False
    reserve: int = RESERVE

    def steps(self, count: int) -> Iterator[SimulatedStep]:
        """Run so many steps, after a warm-up where the policy isolates groups from the start."""
        policy, setup = self.policy, self.setup
        most = (setup.groups * 2) * setup.responses
        tau = ((self.tail or self.bulk).table(most, self.depths[0]), self.bulk.table(most, self.depths[1]))
        names = [f"replica-{i}" for i in range(setup.replicas)]
        state, ledger, drawn = policy.start(setup), Ledger(), 0
        q = policy.initial(state).q
        if q:
            prompts = range(self.reserve, self.reserve + setup.groups)
            ledger, _ = self._step(ledger, 0, prompts, q, 0, names, tau, discard=True)
        for step in range(1, count + 1):
            decision = policy.decide(state, len(ledger.tail))
            q_next = 0 if step == count else decision.q_next
            fresh = fresh_groups(setup.groups, len(ledger.tail), q_next)
            prompts, drawn = range(drawn, drawn + fresh), drawn + fresh
            ledger, outcome = self._step(ledger, step, prompts, q_next, decision.m, names, tau)
            report = policy.report(state)
            state = policy.observe(state, outcome)
            yield SimulatedStep(outcome, report)

    def _step(
        self,
        ledger: Ledger,
        step: int,
        prompts: range,
        q_next: int,
        m: int,
        names: list[str],
        tau: tuple[np.ndarray, np.ndarray],
        discard: bool = False,
    ) -> tuple[Ledger, StepOutcome]:
        plan = plan_step(
            step=step,
            responses=self.setup.responses,
            tail=[(group.uid, group.attempt + 1) for group in ledger.tail],
            fresh=[str(prompt) for prompt in prompts],
            q_next=q_next,
            m=m,
            replicas=names,
        )
        ledger = ledger.begin(plan)
        outcome = run_step(plan, self._lengths(plan), self.policy, *tau, records=self.records)
        ledger = ledger.finish(step, [group.uid for group in outcome.consumed], outcome.candidates, discard)
        ledger.check()
        return ledger, outcome

    def _lengths(self, plan: StepPlan) -> Ints:
        prompts = np.array([int(group.uid) for group in plan.groups], np.int64)
        attempts = np.array([group.attempt for group in plan.groups], np.int64)
        return self.workload.lengths(prompts, attempts, plan.step)
