"""verl's own rule: each response goes to the replica with fewest requests in flight.

verl's GlobalRequestLoadBalancer (verl/workers/rollout/router.py) breaks ties at random; here the first in the pool's
order after the response's round-robin place wins, so that the same events give the same placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.policy import NoTail, SelfPlacing


@dataclass(frozen=True, slots=True)
class LeastLoaded(NoTail, SelfPlacing):
    """Every replica, single responses, fewest in flight; nothing is ever left over."""

    name: str = "least_loaded"

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        first = (group.ordinal * responses + session) % len(pool)
        order = [*pool[first:], *pool[:first]]
        return min(order, key=lambda replica: load.get(replica, 0))
