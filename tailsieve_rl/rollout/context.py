"""Which response a generate call belongs to. Tasks inherit a context variable, so agent loops need not know of it."""

from collections.abc import Iterator
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
        length: tokens that the response is forced to have; None: as many as the model wants.
        first_token_s: seconds from dispatch to the first token of the first turn, when the engine tells.
        emulated_end_s: when an emulated engine ended the last turn, in its seconds since the step's start.
        turns: numbers the generate calls, so that each has an engine request id of its own.
    """

    uid: str
    session: int
    attempt: int
    retry: int = 0
    length: int | None = None
    first_token_s: float | None = None
    emulated_end_s: float | None = None
    turns: Iterator[int] = field(default_factory=count)

    def next_engine_id(self) -> str:
        """A request id that no other generate call of the run has, and that says what it is."""
        return f"{self.uid}.{self.attempt}.{self.session}.{self.retry}.{next(self.turns)}"


@dataclass(slots=True)
class ValidationContext:
    """A validation response: every replica, least loaded."""

    name: str
    turns: Iterator[int] = field(default_factory=count)

    def next_engine_id(self) -> str:
        return f"val-{self.name}.{next(self.turns)}"


RESPONSE: ContextVar[ResponseContext | ValidationContext | None] = ContextVar("tailsieve_response", default=None)
CALL: ContextVar[tuple[str, int] | None] = ContextVar("tailsieve_call", default=None)
"""The generate call that this task makes: its engine request id, and the tokens of its prompt."""

ATTEMPT = "__tailsieve_attempt__"
"""Column of a dispatched prompt that holds its attempt number."""

LENGTHS = "__tailsieve_lengths__"
"""Column of a dispatched prompt that holds the lengths that its responses are forced to have, where a run does that."""

SESSIONS = "__tailsieve_sessions__"
"""Of a dispatched batch: n, the responses of each of its prompts."""
