"""A controller that follows a script: for experiments that ask what a change of q does, not when to make one."""

from collections.abc import Mapping
from dataclasses import dataclass

from tailsieve_rl.routing.allocation import Allocation, check_allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.setup import Decision, Setup


@dataclass(frozen=True, slots=True)
class Alternating:
    """Two sizes of the tail set in turn, at a fixed split.

    The decision of step t selects the tail set of step t + 1. Steps 1 to `period` select `first` groups, the next
    `period` steps `second`, and so on: the steps period + 1, 2 period + 1, ... are those of a change.

    Attributes:
        first, second: q, groups.
        m: tail replicas.
        period: steps between changes.
    """

    first: int
    second: int
    m: int
    period: int

    def start(self, setup: Setup) -> int:
        for q in (self.first, self.second):
            check_allocation(Allocation(q, self.m), setup.groups, setup.replicas)
        return 0

    def initial(self, state: int) -> Allocation:
        return Allocation(self.first, self.m)

    def decide(self, state: int, q: int) -> Decision:
        """The state is the number of steps that were seen."""
        return Decision(m=self.m, q_next=(self.first, self.second)[(state // self.period) % 2])

    def observe(self, state: int, outcome: StepOutcome) -> int:
        return state + 1

    def report(self, state: int) -> Mapping[str, float]:
        return {}
