"""What `vllm serve` answers, with a given tau(b), over a real port; its clock is virtual: nothing is waited for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ARRIVAL_S = 0.0002
"""Between two requests of one call."""


@dataclass
class FakeEngine:
    """An engine that decodes up to `max_num_seqs` requests at once, each step taking tau(running).

    `slow_first`: how much slower the first call with each number of prompts is, as with kernels that are compiled then.
    `late_s`: real seconds by which the counters come after the response.
    `drafts`: tokens that it drafts at once, `accepted` of which each verification accepts, as far as tokens are left.
    """

    tau: Callable[[int], float]
    max_num_seqs: int = 1000
    slow_first: float = 5.0
    late_s: float = 0.0
    longest: int = 4096
    name: str = "fake"
    preemptions: int = 0
    other_tokens: int = 0
    cut: int = 0
    no_metrics: bool = False
    drafts: int = 0
    accepted: int = 0
    calls: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def __post_init__(self) -> None:
        self._clock = self._decode_s = 0.0
        self._ended = self._tokens = self._steps = 0
        self._verified = [0] * (self.drafts + 1)
        self._seen: set[int] = set()
        self._counted = self._metrics()

    def decode(self, b: int, tokens: int) -> None:
        slow = self.slow_first if b not in self._seen else 1.0
        self._seen.add(b)
        arrivals = [self._clock + ARRIVAL_S * i for i in range(b)]
        running: list[list[float]] = []  # first token's time, tokens left
        while arrivals or running:
            while arrivals and arrivals[0] <= self._clock and len(running) < self.max_num_seqs:
                arrivals.pop(0)
                running.append([-1.0, tokens])
            self._clock += self.tau(len(running)) * slow
            self._steps += 1
            for request in running:
                first, got = request[0] < 0, 1
                if self.drafts and not first:  # as many or fewer drafts accepted: 0, 1, ... of them are counted
                    got = min(1 + self.accepted, int(request[1]))
                    for i in range(got):
                        self._verified[i] += 1
                request[0] = self._clock if first else request[0]
                request[1] -= got
                self._tokens += got
                if not request[1]:
                    self._decode_s += self._clock - request[0]
                    self._ended += 1
            running = [request for request in running if request[1]]
        self._tokens += self.other_tokens

    def _metrics(self) -> str:
        values = {
            "request_decode_time_seconds_sum": self._decode_s,
            "request_decode_time_seconds_count": self._ended,
            "generation_tokens_total": self._tokens,
            "iteration_tokens_total_count": self._steps,
            "num_preemptions_total": self.preemptions * self._ended,
        }
        lines = ["# HELP vllm:generation_tokens_total Number of generation tokens processed."]
        lines += [f'vllm:{name}{{engine="0",model_name="m"}} {at}' for name, at in values.items()]
        if self.drafts:
            lines.append(f'vllm:spec_decode_num_drafts_total{{engine="0"}} {self._verified[0]}')
            name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
            lines += [f'{name}{{engine="0",position="{i}"}} {n}' for i, n in enumerate(self._verified[1:])]
        return "\n".join(lines)

    async def _completions(self, request: web.Request) -> web.Response:
        call = await request.json()
        self.calls.append(call)
        b, tokens = len(call["prompt"]), call["max_tokens"]
        if len(call["prompt"][0]) + tokens > self.longest:
            return web.json_response({"error": {"message": "too long"}}, status=400)
        self.decode(b, tokens - self.cut)

        def count() -> None:
            self._counted = self._metrics()

        asyncio.get_running_loop().call_later(self.late_s, count) if self.late_s else count()
        return web.json_response({"usage": {"completion_tokens": b * (tokens - self.cut)}})

    def app(self) -> web.Application:
        async def models(_: web.Request) -> web.Response:
            card = {"id": self.name, "root": self.name, "max_model_len": self.longest}
            return web.json_response({"data": [card]})

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(text="" if self.no_metrics else self._counted)

        async def version(_: web.Request) -> web.Response:
            return web.json_response({"version": "0.0-fake"})

        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_get("/v1/models", models)
        app.router.add_get("/metrics", metrics)
        app.router.add_get("/version", version)
        return app


@contextlib.contextmanager
def serving(engine: FakeEngine) -> Iterator[FakeEngine]:
    """The engine at `engine.url`, in a thread of its own."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(engine.app())

    async def start() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return int(runner.addresses[0][1])

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        engine.url = f"http://127.0.0.1:{asyncio.run_coroutine_threadsafe(start(), loop).result(30)}"
        yield engine
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
