"""Random steps through the decision core, in the order in which the live binding calls it.

draw -> decide -> plan_step -> ledger.begin -> begin -> place -> response_finished ... -> ledger.finish -> observe.
Beside every event stands what a second, naive model (`Reference`) says should have happened.
"""

import pickle
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.outcome import GroupOutcome, StepOutcome
from tailsieve_rl.routing.plan import StepPlan, fresh_groups, plan_step
from tailsieve_rl.routing.policies import Decision, RoutingPolicy, Setup
from tailsieve_rl.routing.step import StepState, Verdict, begin, response_finished


@dataclass(frozen=True)
class Scenario:
    """A run to be driven.

    Attributes:
        setup: N, n, R.
        policy: what decides.
        steps: policy updates; the last one plans q_next = 0.
        warmup: one rollout of N prompts before, whose completed groups are discarded.
        deaths: steps before which a replica dies (the last one never does).
        failures: steps whose first try is rolled back.
        ties_by_uid: responses that finish in the same instant arrive in the order of their uid (else in any).
        seed: of completion times, lengths and disturbances.
    """

    setup: Setup
    policy: RoutingPolicy
    steps: int
    warmup: bool = False
    deaths: frozenset[int] = frozenset()
    failures: frozenset[int] = frozenset()
    ties_by_uid: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Arrival:
    """One call of response_finished. A verdict of None stands for a ValueError."""

    uid: str
    session: int
    attempt: int
    tokens: int
    at_s: float
    verdict: Verdict | None
    expected: Verdict | None
    state_changed: bool
    complete: bool
    expected_complete: bool


@dataclass(frozen=True)
class RanStep:
    """A step that was driven to its end, with the ledger before, during and after it."""

    plan: StepPlan
    decision: Decision
    alive: tuple[str, ...]
    before: Ledger
    running: Ledger
    after: Ledger
    arrivals: tuple[Arrival, ...]
    state: StepState
    outcome: StepOutcome
    placed: Mapping[tuple[str, int], str]

    @property
    def consumed(self) -> set[str]:
        return {group.uid for group in self.outcome.consumed}


@dataclass(frozen=True)
class Run:
    """What became of a scenario. `warmup` is the rollout before step 1, if there was one."""

    scenario: Scenario
    drawn: tuple[str, ...]
    warmup: RanStep | None
    steps: tuple[RanStep, ...]

    @property
    def all_steps(self) -> tuple[RanStep, ...]:
        return self.steps if self.warmup is None else (self.warmup, *self.steps)


@dataclass
class Reference:
    """The rules of design.md, section 2, as naively as they can be put: sets of what came, nothing derived."""

    plan: StepPlan
    seen: set[tuple[str, int]] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    cutoff: bool = False

    def arrive(self, uid: str, session: int, attempt: int) -> Verdict | None:
        task = {t.uid: t for t in self.plan.groups}.get(uid)
        left_over = task is not None and not task.tail and self.cutoff and uid not in self.whole
        if task is None or task.attempt != attempt or left_over:
            return Verdict.REFUSED
        if (uid, session) in self.seen:
            return None
        self.seen.add((uid, session))
        if sum(u == uid for u, _ in self.seen) < self.plan.responses:
            return Verdict.WAITING
        self.whole.add(uid)
        fresh = sum(not t.tail and t.uid in self.whole for t in self.plan.groups)
        self.cutoff = self.cutoff or fresh == len(self.plan.groups) - self.plan.q - self.plan.q_next
        return Verdict.CONSUMED

    @property
    def complete(self) -> bool:
        return self.cutoff and all(t.uid in self.whole for t in self.plan.groups if t.tail)


def drive(scenario: Scenario, reload: bool = False) -> Run:
    """Run a scenario. With `reload`, every value goes through pickle wherever a process could end."""
    keep = (lambda value: pickle.loads(pickle.dumps(value))) if reload else (lambda value: value)
    setup, policy = scenario.setup, keep(scenario.policy)
    uids, ledger, memory = (f"p{i:05d}" for i in count()), Ledger(), policy.start(setup)
    alive = tuple(f"replica-{i}" for i in range(setup.replicas))
    drawn: list[str] = []
    ran: list[RanStep] = []
    for step in range(0 if scenario.warmup else 1, scenario.steps + 1):
        rng = random.Random(f"{scenario.seed} {step}")
        if step in scenario.deaths and len(alive) > 1:
            dead = rng.choice(alive)
            alive = tuple(name for name in alive if name != dead)
        q = len(ledger.tail)
        decision = Decision(m=0, q_next=policy.initial(memory).q) if step == 0 else policy.decide(memory, q)
        q_next = 0 if step == scenario.steps else decision.q_next
        needed = setup.groups if step == 0 else fresh_groups(setup.groups, q, q_next)
        fresh = [next(uids) for _ in range(needed)]
        drawn += fresh
        for rolled_back in [True, False] if step in scenario.failures else [False]:
            plan = plan_step(
                step=step,
                responses=setup.responses,
                tail=[(group.uid, group.attempt + 1) for group in ledger.tail],
                fresh=fresh,
                q_next=q_next,
                m=decision.m,
                replicas=alive,
            )
            result = _step(keep(plan), decision, keep(ledger), policy, scenario, alive, rolled_back, keep)
            if result is not None:
                ran.append(result)
        ledger = keep(ran[-1].after)
        if step > 0:
            memory = keep(policy.observe(memory, ran[-1].outcome))
    return Run(scenario, tuple(drawn), ran[0] if scenario.warmup else None, tuple(ran[scenario.warmup :]))


def _step(
    plan: StepPlan,
    decision: Decision,
    before: Ledger,
    policy: RoutingPolicy,
    scenario: Scenario,
    alive: tuple[str, ...],
    rolled_back: bool,
    keep: Any,
) -> RanStep | None:
    rng = random.Random(f"{scenario.seed} {plan.step} {rolled_back}")
    running, state, reference = keep(before.begin(plan)), keep(begin(plan)), Reference(plan)
    load: Counter[str] = Counter()
    placed: dict[tuple[str, int], str] = {}
    lengths = {task.uid: [rng.randint(1, 50) for _ in range(plan.responses)] for task in plan.groups}
    placement = policy.placement(plan, lengths)
    for task in plan.groups:
        for session in range(plan.responses):
            name = placement.place(task, session, plan.responses, plan.replicas_of(task.pool), load)
            placed[task.uid, session] = name
            load[name] += 1
    arrivals: list[Arrival] = []
    for i, (at_s, uid, session, attempt) in enumerate(_events(plan, rng, scenario.ties_by_uid)):
        if rolled_back and i > len(placed) // 2:
            return None
        if reference.cutoff and uid in state.candidates and rng.random() < 0.5:
            continue  # it was aborted in time
        tokens = rng.randint(1, 99)
        expected = reference.arrive(uid, session, attempt)
        verdict: Verdict | None = None
        now = state
        with suppress(ValueError):
            now, verdict = response_finished(state, uid, session, attempt, tokens, at_s)
        changed = now != state
        state = keep(now)
        arrivals.append(
            Arrival(uid, session, attempt, tokens, at_s, verdict, expected, changed, state.complete, reference.complete)
        )
    if rolled_back:
        return None
    outcome = _outcome(state)
    after = running.finish(plan.step, [g.uid for g in outcome.consumed], outcome.candidates, discard=plan.step == 0)
    return RanStep(plan, decision, alive, before, running, after, tuple(arrivals), state, outcome, placed)


def _events(plan: StepPlan, rng: random.Random, ties_by_uid: bool) -> Iterator[tuple[float, str, int, int]]:
    """(time, uid, session, attempt) of everything that arrives: each response once, some twice, some out of date."""
    events = []
    for task in plan.groups:
        for session in range(plan.responses):
            at_s = float(rng.randint(1, 2 * plan.responses))
            events.append((at_s, task.uid, session, task.attempt))
            if rng.random() < 0.1:
                events.append((at_s + rng.randint(0, 2), task.uid, session, task.attempt))
            if rng.random() < 0.2:
                events.append((float(rng.randint(1, 9)), task.uid, session, task.attempt + rng.choice((-1, 1))))
    events.append((1.0, "of an earlier step", 0, 1))
    rng.shuffle(events)
    return iter(sorted(events, key=(lambda e: e[:2]) if ties_by_uid else (lambda e: e[:1])))


def _outcome(state: StepState) -> StepOutcome:
    consumed = tuple(
        GroupOutcome(uid, g.task.tail, tuple(g.lengths[i] for i in sorted(g.lengths)), g.finished_s)
        for uid, g in state.groups.items()
        if g.finished_s is not None
    )
    tail_s = max((g.finished_s for g in consumed if g.tail), default=0.0)
    bulk_s = max((g.finished_s for g in consumed if not g.tail), default=0.0)
    return StepOutcome(state.plan, consumed, state.candidates, state.cutoff_s, tail_s, bulk_s, max(tail_s, bulk_s))
