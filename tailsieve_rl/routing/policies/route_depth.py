"""Speculation by route: any policy, with a draft depth for each pool (paper 3.4), watched for drafts gone stale."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control.depth import DepthController
from tailsieve_rl.routing.draft import acceptance
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import Pool, StepPlan
from tailsieve_rl.routing.policies.policy import Lengths, Placement, RoutingPolicy
from tailsieve_rl.routing.setup import Decision, Setup

MIN_VERIFICATIONS = 100
"""Below it an acceptance is luck: at one in ten it is known to within a third."""


@dataclass(frozen=True, slots=True)
class RouteDepthState:
    """The policy's state, the depth controller's, and which of its depths are 0 because drafts were stale there."""

    inner: Any
    depths: Any
    stale: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RouteDepth:
    """Adds draft depths to a policy's decisions.

    Once fewer first drafts are accepted in a pool than `min_acceptance`, its drafter does not know the policy (it stays
    as loaded while the policy trains, or was another model's from the start): that pool drafts no more in this run.

    Attributes:
        policy: routes.
        controller: chooses the depths.
        min_acceptance: share of first drafts that must be accepted.
        off: depths that stay 0: "tail" or "bulk".
    """

    policy: RoutingPolicy
    controller: DepthController
    min_acceptance: float = 0.1
    off: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.policy.name

    def start(self, setup: Setup) -> RouteDepthState:
        return RouteDepthState(self.policy.start(setup), self.controller.start(setup))

    def initial(self, state: RouteDepthState) -> Allocation:
        return self.policy.initial(state.inner)

    def decide(self, state: RouteDepthState, q: int) -> Decision:
        decision = self.policy.decide(state.inner, q)
        depths = replace(self.controller.decide(state.depths), **dict.fromkeys(state.stale | self.off, 0))
        return replace(decision, depths=depths)

    def observe(self, state: RouteDepthState, outcome: StepOutcome) -> RouteDepthState:
        inner = self.policy.observe(state.inner, outcome)
        depths = self.controller.observe(state.depths, outcome)
        return RouteDepthState(inner, depths, state.stale.union(*(self._stale(outcome, pool) for pool in Pool)))

    def report(self, state: RouteDepthState) -> Mapping[str, float]:
        report = {**self.policy.report(state.inner), **self.controller.report(state.depths)}
        return {**report, "stale_pools": float(len(state.stale - {"uniform"}))}

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Placement:
        return self.policy.placement(plan, lengths)

    def _stale(self, outcome: StepOutcome, pool: Pool) -> set[str]:
        """The depths that a pool's acceptance rules out; without a tail pool all replicas have the tail's drafter."""
        seen = acceptance(record.accepted for record in outcome.records if record.pool is pool)
        if seen is None or seen.verifications < MIN_VERIFICATIONS or seen.at_least[0] >= self.min_acceptance:
            return set()
        return {"bulk"} if pool is Pool.BULK and outcome.plan.m else {"tail", "uniform"}
