"""verl's own rule: each response goes to the replica with fewest requests in flight.

verl's GlobalRequestLoadBalancer (verl/workers/rollout/router.py) breaks ties at random; here the first in the pool's
order after the response's round-robin place wins, so that the same events give the same placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.policy import Decision, Setup


@dataclass(frozen=True, slots=True)
class LeastLoaded:
    """Every replica, single responses, fewest in flight; nothing is ever left over."""

    name: str = "least_loaded"

    def start(self, setup: Setup) -> None:
        return None

    def initial(self, state: None) -> Allocation:
        return UNIFORM

    def decide(self, state: None, q: int) -> Decision:
        return Decision(m=0, q_next=0)

    def observe(self, state: None, outcome: StepOutcome) -> None:
        return None

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        first = (group.ordinal * responses + session) % len(pool)
        order = [*pool[first:], *pool[:first]]
        return min(order, key=lambda replica: load.get(replica, 0))
