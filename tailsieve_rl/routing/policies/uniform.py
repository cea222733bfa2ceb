"""Uniform group routing: every replica, whole groups, evenly by count (paper A.2, the baseline of every table)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.dispatch import by_group
from tailsieve_rl.routing.policies.policy import NoTail, SelfPlacing


@dataclass(frozen=True, slots=True)
class Uniform(NoTail, SelfPlacing):
    """Groups stay whole and are dealt out in turn; nothing is ever left over."""

    name: str = "uniform"

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        return by_group(group, session, responses, pool)
