"""One vLLM engine over HTTP: generate responses together, and read the counters that it keeps."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp

from tailsieve_rl.calibration.settings import Prompt

RUN_TIMEOUT_S = 3600.0
ANSWER_TIMEOUT_S = 30.0
COUNTERS_TIMEOUT_S = 5.0
"""How long the counters of finished requests may come after their responses."""
COUNTERS_INTERVAL_S = 0.01

LINE = re.compile(r"^(vllm:\w+)(?:\{.*\})? (\S+)", re.MULTILINE)
DRAFTS = "vllm:spec_decode_num_drafts_total"
ACCEPTED = re.compile(
    r'^vllm:spec_decode_num_accepted_tokens_per_pos_total\{.*position="(\d+)".*\} (\S+)', re.MULTILINE
)


class EngineError(RuntimeError):
    """The engine does not answer, or not as the measurement needs."""


class Served(NamedTuple):
    """A model that an engine serves: the name to ask for, where it came from, its longest sequence in tokens."""

    name: str
    root: str
    longest: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums over an engine's life, by its own clock.

    Attributes:
        decode_s: from a request's first token to its last, over finished requests.
        requests: finished requests.
        tokens: tokens generated.
        steps: forward passes.
        preemptions: times that a request had to give its cache back.
        verifications: of drafts, of single requests.
        accepted: how many of them accepted 1, 2, ... drafts or more; empty without speculation.
    """

    decode_s: float
    requests: float
    tokens: float
    steps: float
    preemptions: float
    verifications: float = 0.0
    accepted: tuple[float, ...] = ()

    def __sub__(self, before: Counters) -> Counters:
        return Counters(
            self.decode_s - before.decode_s,
            self.requests - before.requests,
            self.tokens - before.tokens,
            self.steps - before.steps,
            self.preemptions - before.preemptions,
            self.verifications - before.verifications,
            tuple(now - then for now, then in zip(self.accepted, before.accepted, strict=True)),
        )


class Client:
    """Use it as an asynchronous context manager."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        key = os.environ.get("VLLM_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session = aiohttp.ClientSession(headers=headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def healthy(self) -> bool:
        try:
            await self._ask("GET", "/health", 1.0)
        except EngineError:
            return False
        return True

    async def version(self) -> str:
        return str((await self._json("GET", "/version", ANSWER_TIMEOUT_S)).get("version", "unknown"))

    async def served(self) -> list[Served]:
        cards = (await self._json("GET", "/v1/models", ANSWER_TIMEOUT_S)).get("data") or []
        return [Served(card["id"], card.get("root") or "", card.get("max_model_len")) for card in cards]

    async def generate(self, model: str, prompts: Sequence[Prompt], tokens: int) -> None:
        """One response of exactly `tokens` tokens to each prompt, all at once, sampled as a rollout is.

        One call carries all prompts, so that they reach the engine together.
        """
        asked = {
            "model": model,
            "prompt": list(prompts),
            "max_tokens": tokens,
            "ignore_eos": True,  # with it nothing ends a response early; min_tokens would cost time in every step
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "logprobs": 0,  # the sampled token's, as verl asks for
        }
        answer = await self._json("POST", "/v1/completions", RUN_TIMEOUT_S, asked)
        got = (answer.get("usage") or {}).get("completion_tokens")
        if got != tokens * len(prompts):
            raise EngineError(f"{len(prompts)} responses have {got} tokens, not {tokens} each")

    async def counters(self, since: Counters | None = None, requests: int = 0) -> Counters:
        """The counters, once `requests` requests more than `since` are in them: they may come after a response."""
        deadline = time.monotonic() + COUNTERS_TIMEOUT_S
        while True:
            found = _counters(await self._ask("GET", "/metrics", ANSWER_TIMEOUT_S), self.url)
            if since is None or found.requests - since.requests >= requests:
                return found
            if time.monotonic() > deadline:
                raise EngineError(f"{self.url}/metrics does not count the requests that have ended")
            await asyncio.sleep(COUNTERS_INTERVAL_S)

    async def _json(self, method: str, path: str, timeout_s: float, body: Any = None) -> dict[str, Any]:
        text = await self._ask(method, path, timeout_s, body)
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise EngineError(f"{self.url}{path} does not answer as vLLM does: {text:.100}")
        return found

    async def _ask(self, method: str, path: str, timeout_s: float, body: Any = None) -> str:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.request(method, self.url + path, json=body, timeout=timeout) as answer:
                text = await answer.text()
        except TimeoutError:
            raise EngineError(f"{self.url}{path} did not answer within {timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise EngineError(f"{self.url}{path} cannot be reached: {error or type(error).__name__}") from None
        if answer.status != 200:
            raise EngineError(f"{self.url}{path} answers {answer.status}: {' '.join(text.split()):.300}")
        return text


def _counters(text: str, url: str) -> Counters:
    sums: dict[str, float] = {}
    for name, value in LINE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    accepted: dict[int, float] = {}
    for position, value in ACCEPTED.findall(text):
        accepted[int(position)] = accepted.get(int(position), 0.0) + float(value)
    try:
        return Counters(
            decode_s=sums["vllm:request_decode_time_seconds_sum"],
            requests=sums["vllm:request_decode_time_seconds_count"],
            tokens=sums["vllm:generation_tokens_total"],
            steps=sums["vllm:iteration_tokens_total_count"],
            preemptions=sums["vllm:num_preemptions_total"],
            verifications=sums.get(DRAFTS, 0.0),
            accepted=tuple(count for _, count in sorted(accepted.items())),
        )
    except KeyError as error:
        raise EngineError(f"{url}/metrics lacks {error.args[0]}: is it vLLM, without --disable-log-stats?") from None
