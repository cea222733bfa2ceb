"""Uniform group routing: every replica, whole groups, evenly by count (paper A.2, the baseline of every table)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.dispatch import by_group
from tailsieve_rl.routing.policies.policy import Decision, Setup


@dataclass(frozen=True, slots=True)
class Uniform:
    """Groups stay whole and are dealt out in turn; nothing is ever left over."""

    name: str = "uniform"

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
        return by_group(group, session, responses, pool)
