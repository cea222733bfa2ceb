"""An abort that is verified, never assumed.

vLLM's own `abort(id)` is silent when the id is not registered (yet): a request that is still being prepared when its
abort arrives runs to its end. Here the id is refused first, so a call that has not reached the engine never will;
one that is on its way in is aborted again as soon as it appears; and the engine core is asked for an answer that it
can only give after it has carried out the aborts sent before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from tailsieve_rl.engines.abort_report import AbortReport, nothing_aborted
from tailsieve_rl.engines.vllm.flights import Flight, Flights

DEFAULT_TIMEOUT_S = 10.0
RECHECK_S = 0.005
"""Registering takes a request some milliseconds, which vLLM does not announce."""


async def verified_abort(
    engine: Any, flights: Flights, request_ids: Iterable[str], timeout_s: float = DEFAULT_TIMEOUT_S
) -> AbortReport:
    """Abort by external id and return when none of the ids is left in the engine, or the time is up."""
    started = time.monotonic()
    report = nothing_aborted()
    registered = engine.output_processor.external_req_ids
    targets = {request_id: flights.of(request_id) for request_id in dict.fromkeys(request_ids)}
    flights.refuse(targets)
    report["unknown"] = [i for i, own in targets.items() if not own and i not in registered]
    for request_id in report["unknown"]:
        del targets[request_id]

    def lingering() -> list[str]:
        return [i for i, own in targets.items() if i in registered or any(flight.inside for flight in own)]

    while (left := lingering()) and time.monotonic() - started < timeout_s:
        await engine.abort(left)
        inside = [flight.ended for request_id in left for flight in targets[request_id] if flight.inside]
        await (asyncio.wait(inside, timeout=RECHECK_S) if inside else asyncio.sleep(RECHECK_S))
    answered = await _core_answers(engine, timeout_s - (time.monotonic() - started))
    report["remaining"] = left if answered else list(targets)
    for request_id, own in targets.items():
        report["tokens"][request_id] = max((flight.tokens for flight in own), default=0)
        if request_id not in report["remaining"]:
            report["finished" if _ended_by_itself(own) else "aborted"].append(request_id)
    report["seconds"] = time.monotonic() - started
    return report


async def _core_answers(engine: Any, timeout_s: float) -> bool:
    """Requests, aborts and questions reach the core through one queue, in order."""
    try:
        await asyncio.wait_for(engine.is_paused(), max(timeout_s, RECHECK_S))
    except TimeoutError:
        return False
    return True


def _ended_by_itself(flights: list[Flight]) -> bool:
    return any(flight.finish_reason not in (None, "abort") for flight in flights)
