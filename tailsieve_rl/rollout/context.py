"""Which response a generate call belongs to. Tasks inherit a context variable, so agent loops need not know of it."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count


@dataclass(slots=True)
class ResponseContext:
    """One try of one response.

    Attributes:
        uid: its group.
        session: which of the group's n responses.
        attempt: the group's attempt number.
        retry: 0 for the first try within the attempt.
        first_token_s: seconds from dispatch to the first token of the first turn, when the engine tells.
        turns: numbers the generate calls, so that each has an engine request id of its own.
    """

    uid: str
    session: int
    attempt: int
    retry: int = 0
    first_token_s: float | None = None
    turns: "count[int]" = field(default_factory=count)

    def next_engine_id(self) -> str:
        """A request id that no other generate call of the run has, and that says what it is."""
        return f"{self.uid}.{self.attempt}.{self.session}.{self.retry}.{next(self.turns)}"


@dataclass(slots=True)
class ValidationContext:
    """A validation response: every replica, least loaded."""

    name: str
    turns: "count[int]" = field(default_factory=count)

    def next_engine_id(self) -> str:
        return f"val-{self.name}.{next(self.turns)}"


RESPONSE: ContextVar[ResponseContext | ValidationContext | None] = ContextVar("tailsieve_response", default=None)
ENGINE_ID: ContextVar[str | None] = ContextVar("tailsieve_engine_id", default=None)

ATTEMPT = "__tailsieve_attempt__"
"""Column of a dispatched prompt that holds its attempt number."""
