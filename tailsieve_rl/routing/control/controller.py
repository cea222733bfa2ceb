"""What a controller is: it moves (q, m) from one step to the next (paper 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tailsieve_rl.routing.allocation import Allocation, check_allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.setup import Decision, Setup


class Controller(Protocol):
    """State is a frozen, picklable value that the caller keeps: the same outcomes give the same decisions."""

    def start(self, setup: Setup) -> Any:
        """The state before the first step."""
        ...

    def initial(self, state: Any) -> Allocation:
        """The allocation that the warm-up prepares."""
        ...

    def decide(self, state: Any, q: int) -> Decision:
        """Fix m for the coming step, whose tail set has q groups, and q for the one after it."""
        ...

    def observe(self, state: Any, outcome: StepOutcome) -> Any:
        """The state after a step was seen."""
        ...

    def report(self, state: Any) -> Mapping[str, float]:
        """What the controller knows and proposes, by metric name; a number that it has not yet is left out."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same (q, m) in every step."""

    allocation: Allocation

    def start(self, setup: Setup) -> None:
        check_allocation(self.allocation, setup.groups, setup.replicas)

    def initial(self, state: None) -> Allocation:
        return self.allocation

    def decide(self, state: None, q: int) -> Decision:
        return Decision(m=self.allocation.m, q_next=self.allocation.q)

    def observe(self, state: None, outcome: StepOutcome) -> None:
        return None

    def report(self, state: None) -> Mapping[str, float]:
        return {}


class StateKeeps(Protocol):
    """What the state of an adaptive controller has."""

    @property
    def applied(self) -> Allocation: ...

    @property
    def figures(self) -> Mapping[str, float]: ...


class Adaptive:
    """The half of a controller that only reads its state: all decisions are made when a step is observed."""

    __slots__ = ()

    def initial(self, state: StateKeeps) -> Allocation:
        return state.applied

    def decide(self, state: StateKeeps, q: int) -> Decision:
        return Decision(m=state.applied.m, q_next=state.applied.q)

    def report(self, state: StateKeeps) -> Mapping[str, float]:
        return state.figures
