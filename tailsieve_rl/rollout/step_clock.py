"""The clock of a step."""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class StepClock:
    """Seconds since a step's first dispatch; of emulated engines, in their compressed time.

    Attributes:
        started: monotonic time at which the step began; None while emulated engines are held back: the time is 0.
        time_scale: seconds of wall time that one second takes.
    """

    started: float | None
    time_scale: float = 1.0

    def now(self) -> float:
        return 0.0 if self.started is None else (time.monotonic() - self.started) / self.time_scale

    def start(self) -> None:
        """The step begins now."""
        self.started = time.monotonic()
