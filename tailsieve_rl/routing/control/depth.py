"""What a controller of draft depths is (paper 3.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.setup import Setup


class DepthController(Protocol):
    """State is a frozen, picklable value that the caller keeps: the same outcomes give the same decisions."""

    def start(self, setup: Setup) -> Any:
        """The state before the first step."""
        ...

    def decide(self, state: Any) -> DraftDepths:
        """The depths of the coming step."""
        ...

    def observe(self, state: Any, outcome: StepOutcome) -> Any:
        """The state after a step was seen."""
        ...

    def report(self, state: Any) -> Mapping[str, float]:
        """What it knows, by metric name."""
        ...


@dataclass(frozen=True, slots=True)
class FixedDepths:
    """The same depths in every step."""

    depths: DraftDepths

    def start(self, setup: Setup) -> None:
        return None

    def decide(self, state: None) -> DraftDepths:
        return self.depths

    def observe(self, state: None, outcome: StepOutcome) -> None:
        return None

    def report(self, state: None) -> Mapping[str, float]:
        return {}
