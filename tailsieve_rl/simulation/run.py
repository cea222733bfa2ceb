"""Many steps in virtual time: any policy, with warm-up, cutoff, regeneration and transitions as in a real run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Acceptance, Depth
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import Pool, StepPlan, fresh_groups, plan_step
from tailsieve_rl.routing.policies import RoutingPolicy, Setup
from tailsieve_rl.routing.setup import Decision
from tailsieve_rl.simulation.executor import Floats, Ints, run_step
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
        bulk: decode model of the bulk pool, and of every replica under uniform routing; with points for every draft
            depth that the policy asks for.
        policy: what decides.
        tail: decode model of the tail pool (with another drafter); None: the same.
        reserve: position of the warm-up's first prompt.
        records: whether outcomes hold a record of every response (needed by the online decode model).
    """

    setup: Setup
    workload: Workload
    bulk: DecodeModel
    policy: RoutingPolicy
    tail: DecodeModel | None = None
    records: bool = False
    reserve: int = RESERVE

    def steps(self, count: int) -> Iterator[SimulatedStep]:
        """Run so many steps, after a warm-up where the policy isolates groups from the start."""
        policy, setup = self.policy, self.setup
        speeds = _Speeds(self.tail or self.bulk, self.bulk, most=(setup.groups * 2) * setup.responses)
        names = [f"replica-{i}" for i in range(setup.replicas)]
        state, ledger, drawn = policy.start(setup), Ledger(), 0
        q = policy.initial(state).q
        if q:
            prompts = range(self.reserve, self.reserve + setup.groups)
            ledger, _ = self._step(ledger, 0, prompts, q, Decision(0, q), names, speeds, discard=True)
        for step in range(1, count + 1):
            decision = policy.decide(state, len(ledger.tail))
            q_next = 0 if step == count else decision.q_next
            fresh = fresh_groups(setup.groups, len(ledger.tail), q_next)
            prompts, drawn = range(drawn, drawn + fresh), drawn + fresh
            ledger, outcome = self._step(ledger, step, prompts, q_next, decision, names, speeds)
            report = policy.report(state)
            state = policy.observe(state, outcome)
            yield SimulatedStep(outcome, report)

    def _step(
        self,
        ledger: Ledger,
        step: int,
        prompts: range,
        q_next: int,
        decision: Decision,
        names: list[str],
        speeds: "_Speeds",
        discard: bool = False,
    ) -> tuple[Ledger, StepOutcome]:
        plan = plan_step(
            step=step,
            responses=self.setup.responses,
            tail=[(group.uid, group.attempt + 1) for group in ledger.tail],
            fresh=[str(prompt) for prompt in prompts],
            q_next=q_next,
            m=decision.m,
            replicas=names,
            depths=decision.depths,
        )
        ledger = ledger.begin(plan)
        tail_tau, bulk_tau = speeds.of(plan)
        outcome = run_step(
            plan, self._lengths(plan), self.policy, tail_tau, bulk_tau, self.records, accepted=speeds.accepted(plan)
        )
        ledger = ledger.finish(step, [group.uid for group in outcome.consumed], outcome.candidates, discard)
        ledger.check()
        return ledger, outcome

    def _lengths(self, plan: StepPlan) -> Ints:
        prompts = np.array([int(group.uid) for group in plan.groups], np.int64)
        attempts = np.array([group.attempt for group in plan.groups], np.int64)
        return self.workload.lengths(prompts, attempts, plan.step)


class _Speeds:
    """Tables of tau for the pools of a plan, each made once."""

    def __init__(self, tail: DecodeModel, bulk: DecodeModel, most: int):
        self._models, self._most = {Pool.TAIL: tail, Pool.BULK: bulk}, most
        self._accepted = {pool: model.acceptance for pool, model in self._models.items()}
        self._tables: dict[tuple[Pool, Depth], Floats] = {}

    def of(self, plan: StepPlan) -> tuple[Floats, Floats]:
        """(tail, bulk) seconds per token by batch size."""
        return self._table(Pool.TAIL, plan.depth_of(Pool.TAIL)), self._table(Pool.BULK, plan.depth_of(Pool.BULK))

    def accepted(self, plan: StepPlan) -> dict[Pool, Acceptance]:
        """Of the pools that draft."""
        return {pool: found for pool, found in self._accepted.items() if found and plan.depth_of(pool)}

    def _table(self, pool: Pool, depth: Depth) -> Floats:
        if (pool, depth) not in self._tables:
            self._tables[pool, depth] = self._models[pool].table(self._most, depth)
        return self._tables[pool, depth]
