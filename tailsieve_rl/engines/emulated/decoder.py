"""What an emulated replica decodes and when, in emulated seconds. Pure: the clock is the caller's."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence


class Decoder:
    """All running requests advance together, a token every tau(b) seconds when b of them run (paper 2.1).

    Since they advance alike, one number, the tokens that a request running from the start would have, says how far
    each of them is; an event costs a logarithm of the requests that run.

    Args:
        tau: (capacity + 1,) or more; tau[b] is seconds per token at b running requests, tau[0] is not used.
        capacity: requests that run at once; more wait, first come, first served.
    """

    def __init__(self, tau: Sequence[float], capacity: int):
        if len(tau) <= capacity:
            raise ValueError(f"tau is known up to {len(tau) - 1} requests, fewer than the capacity {capacity}")
        self._tau, self._capacity = [float(seconds) for seconds in tau], capacity
        self._now_s, self._level = 0.0, 0.0
        self._started: dict[str, float] = {}
        self._ends: list[tuple[float, int, str]] = []
        self._waiting: deque[tuple[str, float]] = deque()
        self._order = 0

    @property
    def running(self) -> int:
        return len(self._started)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def set_tau(self, tau: Sequence[float]) -> None:
        """Decode by another table from the time of the last `advance` on."""
        self._tau = [float(seconds) for seconds in tau]

    def admit(self, request_id: str, tokens: float) -> None:
        """A request of so many tokens arrives now, at the time of the last `advance`."""
        if self.running < self._capacity:
            self._start(request_id, tokens)
        else:
            self._waiting.append((request_id, tokens))

    def abort(self, request_id: str) -> float:
        """A request leaves now. Returns the tokens it has; 0 if it waited or is not here."""
        level = self._started.pop(request_id, None)
        if level is None:
            self._waiting = deque(item for item in self._waiting if item[0] != request_id)
            return 0.0
        self._fill()
        return self._level - level

    def next_end_s(self) -> float | None:
        """When the next request finishes if nothing else happens; None if none runs."""
        while self._ends and not self._runs(self._ends[0]):
            heapq.heappop(self._ends)
        if not self._ends:
            return None
        return self._now_s + max(0.0, self._ends[0][0] - self._level) * self._tau[self.running]

    def advance(self, to_s: float) -> list[tuple[str, float]]:
        """Go on to a time that is not before the last one.

        Returns:
            The requests that have finished, each with when, in order.
        """
        finished = []
        while (end_s := self.next_end_s()) is not None and end_s <= to_s:
            self._level, _, request_id = heapq.heappop(self._ends)
            self._now_s = end_s
            del self._started[request_id]
            finished.append((request_id, end_s))
            self._fill()
        if self.running:
            self._level += max(0.0, to_s - self._now_s) / self._tau[self.running]
        self._now_s = max(self._now_s, to_s)
        return finished

    def _start(self, request_id: str, tokens: float) -> None:
        self._started[request_id] = self._level
        self._order += 1
        heapq.heappush(self._ends, (self._level + tokens, self._order, request_id))

    def _fill(self) -> None:
        while self._waiting and self.running < self._capacity:
            self._start(*self._waiting.popleft())

    def _runs(self, end: tuple[float, int, str]) -> bool:
        """Whether an entry of the heap is not one of a request that was aborted."""
        return end[2] in self._started
