"""The emulated server: an actor that answers verl as its vLLM server does, without a model.

It imports neither verl nor torch, so that many of them fit a laptop.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass, field
from typing import Any

from tailsieve_rl.engines.abort_report import AbortReport, nothing_aborted
from tailsieve_rl.engines.emulated.decoder import Decoder
from tailsieve_rl.engines.emulated.speed import Speed
from tailsieve_rl.routing.draft import Depth, verified


@dataclass(slots=True)
class EmulatedOutput:
    """Attribute by attribute what verl's TokenOutput is, which cannot be imported without torch.

    Attributes:
        token_ids: the prompt's last token, as often as the response is long: nothing is computed here.
        log_probs: a zero for each.
        stop_reason: "completed" or "aborted".
        extra_fields: weight versions; arrival, first token and end in emulated seconds since the step's start.
        routed_experts, num_preempted: never any.
    """

    token_ids: list[int]
    log_probs: list[float]
    stop_reason: str
    extra_fields: dict[str, Any]
    routed_experts: Any = None
    num_preempted: int = 0


@dataclass(slots=True)
class _Call:
    """A generate call; `ended` resolves to (tokens, end in emulated seconds, stop reason)."""

    tokens: int
    arrival_s: float
    ended: asyncio.Future[tuple[int, float, str]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class EmulatedServer:
    """Becomes a Ray actor in `replica.py`.

    A step may be held back until all its calls have arrived (`hold`, `arrived`, `start`), so that the time a laptop
    takes to send them, which compression would multiply, is not emulated. Otherwise a call decodes when it arrives.

    Args:
        replica_rank: number of the replica.
        speed: how fast it decodes.
        capacity: requests that decode at once.
        time_scale: seconds of wall time that an emulated second takes.
        stretch: tokens decoded for each token of a response.
    """

    def __init__(self, replica_rank: int, speed: Speed, capacity: int, time_scale: float, stretch: int):
        self.replica_rank, self.global_steps = replica_rank, 0
        self._speed, self._capacity, self._time_scale, self._stretch = speed, capacity, time_scale, stretch
        self._depth: Depth = 0
        self._calls: dict[str, _Call] = {}
        self._refused: set[str] = set()
        self._admitting, self._rejecting = asyncio.Event(), False
        self._admitting.set()
        self._held: list[str] | None = None
        self._arrival = asyncio.Condition()
        self._timer: asyncio.TimerHandle | None = None
        self._restart_clock()

    # ------------------------------------------------------------------ generation

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> EmulatedOutput:
        """A response of the length that the request forces.

        Raises:
            ValueError: if the request forces no length.
        """
        tokens = sampling_params.get("min_tokens")
        if tokens is None or tokens != sampling_params.get("max_tokens"):
            raise ValueError(
                "an emulated engine needs a length: trainer.v1.tailsieve.replay_lengths or replay_workload"
            )
        version = self.global_steps
        if not self._admitting.is_set() and not self._rejecting:
            await self._admitting.wait()
        if request_id in self._refused or not self._admitting.is_set():
            return self._output(prompt_ids, (0, self._now_s(), "aborted"), version, None)
        call = self._calls[request_id] = _Call(tokens, self._now_s())
        if self._held is None:
            self._advance()
            self._decoder.admit(request_id, tokens * self._stretch)
            self._arm()
        else:
            self._held.append(request_id)
            async with self._arrival:
                self._arrival.notify_all()
        return self._output(prompt_ids, await call.ended, version, call.arrival_s)

    def _output(
        self, prompt_ids: list[int], ended: tuple[int, float, str], version: int, arrival_s: float | None
    ) -> EmulatedOutput:
        tokens, end_s, reason = ended
        fields: dict[str, Any] = {
            "tailsieve_replica": self.replica_rank,
            "tailsieve_arrival_s": arrival_s,
            "tailsieve_first_token_s": arrival_s,
            "tailsieve_emulated_end_s": end_s,
            "global_steps": self.global_steps,
            "min_global_steps": version,
        }
        if self._depth and self._speed.acceptance is not None:
            fields["spec_num_draft_tokens"], fields["tailsieve_accepted"] = verified(
                max(tokens - 1, 0), self._depth, self._speed.acceptance
            )
        return EmulatedOutput(prompt_ids[-1:] * tokens, [0.0] * tokens, reason, fields)

    # ------------------------------------------------------------------ a step that starts at once

    async def hold(self) -> None:
        """Keep the calls that arrive from now on until `start`; the clock will begin there."""
        self._held = []
        self._refused.clear()
        self._restart_clock()

    async def arrived(self, calls: int) -> None:
        """Wait until so many calls are held, or have been aborted."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self._held or ()) >= calls)

    async def start(self) -> None:
        """Begin to decode what is held, at emulated time 0."""
        held, self._held = self._held or [], None
        self._restart_clock()
        for request_id in held:
            if request_id in self._calls:
                self._decoder.admit(request_id, self._calls[request_id].tokens * self._stretch)
        self._arm()

    # ------------------------------------------------------------------ aborts

    async def abort_requests(self, request_ids: list[str], timeout_s: float = 0.0) -> AbortReport:
        """Abort by id; an id that has not arrived yet is refused when it does."""
        started = time.monotonic()
        self._advance()
        report = nothing_aborted()
        for request_id in request_ids:
            self._refused.add(request_id)
            if request_id in self._calls:
                report["aborted"].append(request_id)
                report["tokens"][request_id] = self._abort(request_id)
            else:
                report["unknown"].append(request_id)
        self._arm()
        report["seconds"] = time.monotonic() - started
        return report

    async def abort_request(self, request_id: str, reset_prefix_cache: bool = True) -> dict[str, Any]:
        report = await self.abort_requests([request_id])
        return {"aborted": bool(report["aborted"]), "request_id": request_id}

    async def abort_all_requests(self, reset_prefix_cache: bool = True, reject_request: bool = False) -> dict[str, Any]:
        """Abort everything, and hold or reject what arrives, until `resume_generation`."""
        self._admitting.clear()
        self._rejecting = reject_request
        self._advance()
        ids = list(self._calls)
        for request_id in ids:
            self._abort(request_id)
        self._arm()
        return {"aborted_count": len(ids), "request_ids": ids}

    async def resume_generation(self) -> None:
        self._rejecting = False
        self._admitting.set()

    def _abort(self, request_id: str) -> int:
        """Returns the tokens that the response has."""
        call = self._calls.pop(request_id)
        tokens = min(call.tokens, int(self._decoder.abort(request_id) / self._stretch))
        call.ended.set_result((tokens, self._now_s(), "aborted"))
        return tokens

    # ------------------------------------------------------------------ speculation

    async def set_draft_depth(self, depth: Depth) -> Depth:
        """Draft so many tokens at once from now on; the depth that is then in force.

        Raises:
            ValueError: if the profile does not have it.
        """
        self._advance()
        self._decoder.set_tau(self._speed.table(depth))
        self._depth = depth
        self._arm()
        return depth

    # ------------------------------------------------------------------ the rest of what verl calls

    async def set_global_steps(self, global_steps: int) -> None:
        self.global_steps = global_steps

    async def stats(self) -> dict[str, Any]:
        """Requests by where they are."""
        self._advance()
        return {
            "replica": self.replica_rank,
            "running": self._decoder.running,
            "waiting": self._decoder.waiting,
            "held": len(self._held or ()),
            "global_steps": self.global_steps,
        }

    async def ping(self) -> dict[str, Any]:
        return {"replica": self.replica_rank, "alive": True, "pid": os.getpid(), "time_s": time.time()}

    async def wake_up(self, tags: list[str] | None = None) -> None:
        """There is no memory to take."""

    async def sleep(self) -> None:
        """There is no memory to free."""

    async def clear_kv_cache(self) -> None:
        """There is no cache."""

    async def release_kv_cache(self) -> None:
        """There is no cache."""

    async def resume_kv_cache(self) -> None:
        """There is no cache."""

    async def start_profile(self, **_: Any) -> None:
        """There is nothing to profile."""

    async def stop_profile(self) -> None:
        """There is nothing to profile."""

    # ------------------------------------------------------------------ the clock

    def _restart_clock(self) -> None:
        self._decoder = Decoder(self._speed.table(self._depth), self._capacity)
        self._origin = time.monotonic()

    def _now_s(self) -> float:
        """Emulated seconds since the step's start; 0 while it is held."""
        return 0.0 if self._held is not None else (time.monotonic() - self._origin) / self._time_scale

    def _advance(self) -> None:
        for request_id, end_s in self._decoder.advance(self._now_s()):
            call = self._calls.pop(request_id)
            call.ended.set_result((call.tokens, end_s, "completed"))

    def _arm(self) -> None:
        """Wake up when the next request finishes."""
        if self._timer is not None:
            self._timer.cancel()
        end_s = self._decoder.next_end_s()
        self._timer = None
        if end_s is not None:
            delay_s = end_s * self._time_scale - (time.monotonic() - self._origin)
            self._timer = asyncio.get_running_loop().call_later(max(0.0, delay_s), self._wake)

    def _wake(self) -> None:
        self._advance()
        self._arm()
