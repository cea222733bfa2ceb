"""A policy that stops adapting: what it came to is measured at a stable allocation (paper A.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.draft import NO_DRAFTS, DraftDepths
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import StepPlan
from tailsieve_rl.routing.policies.policy import Lengths, Placement, RoutingPolicy
from tailsieve_rl.routing.setup import Decision, Setup


@dataclass(frozen=True, slots=True)
class _State:
    """The adapting policy's state, steps seen, and the last plan's m and draft depths."""

    inner: Any
    steps: int = 0
    m: int = 0
    depths: DraftDepths = NO_DRAFTS


@dataclass(frozen=True, slots=True)
class Held:
    """Adapts for some steps, then keeps m and draft depths, and leaves over as many groups as it regenerates.

    A step in which q changes is shorter or longer than those around it: no allocation can be judged by it.

    Attributes:
        policy: which adapts.
        after: steps that it adapts for.
    """

    policy: RoutingPolicy
    after: int

    @property
    def name(self) -> str:
        return self.policy.name

    def start(self, setup: Setup) -> _State:
        return _State(self.policy.start(setup))

    def initial(self, state: _State) -> Allocation:
        return self.policy.initial(state.inner)

    def decide(self, state: _State, q: int) -> Decision:
        if state.steps < self.after:
            return self.policy.decide(state.inner, q)
        return Decision(m=state.m if q else 0, q_next=q, depths=state.depths)

    def observe(self, state: _State, outcome: StepOutcome) -> _State:
        inner = self.policy.observe(state.inner, outcome)
        if state.steps >= self.after:
            return replace(state, inner=inner, steps=state.steps + 1)
        return _State(inner, state.steps + 1, outcome.plan.m, outcome.plan.depths)

    def report(self, state: _State) -> Mapping[str, float]:
        return self.policy.report(state.inner)

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Placement:
        return self.policy.placement(plan, lengths)
