"""The generate calls that a server holds, and the request ids it must not run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

REFUSED_IDS_KEPT = 16_384
"""Ids are unique to an attempt, so an old one only matters while its call may still be on the way."""


@dataclass(eq=False)
class Flight:
    """One generate call. All times are `time.time()` of the server's machine."""

    request_id: str
    aborted: bool = False
    inside: bool = False
    """Handed to vLLM, which may not have registered it yet, and not yet given back."""
    tokens: int = 0
    finish_reason: str | None = None
    arrival_s: float = field(default_factory=time.time)
    first_token_s: float | None = None
    end_s: float | None = None
    weight_version: int | None = None
    """Of the engine when the request entered it."""
    speculation: dict[str, Any] = field(default_factory=dict)
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


_current: ContextVar[Flight | None] = ContextVar("tailsieve_flight", default=None)


def current() -> Flight | None:
    """The flight on whose behalf this task runs."""
    return _current.get()


class Flights:
    """Lives on the server's event loop; no method awaits, so each sees and leaves a consistent state."""

    def __init__(self) -> None:
        self._flights: dict[str, list[Flight]] = {}
        self._refused: OrderedDict[str, None] = OrderedDict()

    @contextlib.contextmanager
    def open(self, request_id: str) -> Iterator[Flight]:
        """A flight for the duration of a generate call; born aborted if its id was refused before it arrived."""
        flight = Flight(request_id, aborted=request_id in self._refused)
        self._flights.setdefault(request_id, []).append(flight)
        token = _current.set(flight)
        try:
            yield flight
        finally:
            _current.reset(token)
            flight.end_s = time.time()
            siblings = self._flights[request_id]
            siblings.remove(flight)
            if not siblings:
                del self._flights[request_id]
            flight.ended.set_result(None)

    def of(self, request_id: str) -> list[Flight]:
        return list(self._flights.get(request_id, ()))

    def refuse(self, request_ids: Iterable[str]) -> None:
        """From here on no call with one of these ids enters the engine."""
        for request_id in request_ids:
            for flight in self.of(request_id):
                flight.aborted = True
            self._refused[request_id] = None
            self._refused.move_to_end(request_id)
        while len(self._refused) > REFUSED_IDS_KEPT:
            self._refused.popitem(last=False)

    def held_outside(self) -> int:
        """Calls that wait at the server, before the engine."""
        return sum(not flight.inside for flights in self._flights.values() for flight in flights)
