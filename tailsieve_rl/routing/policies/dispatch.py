"""How responses are spread over the replicas of a pool (paper 3.1: round-robin within each pool)."""

from collections.abc import Sequence

from tailsieve_rl.routing.plan import GroupTask


def by_request(group: GroupTask, session: int, responses: int, pool: Sequence[str]) -> str:
    """Round-robin over single responses: the counts of two replicas differ by one at most."""
    return pool[(group.ordinal * responses + session) % len(pool)]


def by_group(group: GroupTask, session: int, responses: int, pool: Sequence[str]) -> str:
    """Round-robin over whole groups: the paper's uniform baseline, all responses of a prompt on one replica."""
    return pool[group.ordinal % len(pool)]


DISPATCH = {"request": by_request, "group": by_group}
