"""Whether a plan fits the engines. tau(b) means that every request of a pool decodes at once (all-admit, paper 2.1)."""

from dataclasses import dataclass
from math import ceil

from tailsieve_rl.routing.allocation import Allocation


@dataclass(frozen=True, slots=True)
class Room:
    """Most requests at once on one replica of each pool."""

    tail: int
    bulk: int

    @property
    def largest(self) -> int:
        return max(self.tail, self.bulk)


def needed_room(allocation: Allocation, fresh: int, responses: int, replicas: int, by_group: bool) -> Room:
    """Requests at once on the fullest replica of each pool.

    Args:
        allocation: q and m in effect.
        fresh: fresh groups dispatched.
        responses: n, responses a group.
        replicas: R.
        by_group: whole groups are kept on one replica (else single responses are spread).
    """

    def fullest(groups: int, pool: int) -> int:
        return ceil(groups / pool) * responses if by_group else ceil(groups * responses / pool)

    if allocation.m == 0:
        return Room(tail=0, bulk=fullest(fresh + allocation.q, replicas))
    return Room(tail=fullest(allocation.q, allocation.m), bulk=fullest(fresh, replicas - allocation.m))
