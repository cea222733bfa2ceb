"""tau(b) of one engine: b requests decode together, and the engine's own clock says how long that took.

tau(b) = (time from first to last token, over the b requests) / (b (tokens - 1)). The engine measures these times where
tokens are made, so the network, the prefill and the front end are not in them. (The difference of two lengths by our
own clock, which also leaves them out, needs more tokens and scatters more: it has the noise of two runs.)
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from tailsieve_rl.calibration.client import Client, Counters, EngineError
from tailsieve_rl.calibration.settings import Prompt, Settings

WARM_UP_TOKENS = 32
TOKEN_IDS = range(3, 256)
"""Random prompts are made of these: every vocabulary has them, and the first few are often special."""
TOGETHER = 0.85
"""Least share of b that must decode in the mean step at depth 0; less means that the engine does not take b at once."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One point.

    Attributes:
        b: requests that decode at once.
        draft_depth: tokens drafted at once.
        samples_s: of every repeat, seconds per token of each request.
        tokens_a_step: of a mean step, of all requests.
        verifications: how many accepted 0, 1, 2, ... drafts, over all repeats; empty without drafts.
    """

    b: int
    draft_depth: int
    samples_s: tuple[float, ...]
    tokens_a_step: float
    verifications: tuple[int, ...] = ()

    @property
    def median_s(self) -> float:
        return statistics.median(self.samples_s)

    def __str__(self) -> str:
        depth = f"draft depth {self.draft_depth}, " if self.draft_depth else ""
        low, middle, high = (1000 * t for t in (min(self.samples_s), self.median_s, max(self.samples_s)))
        repeats = f"{len(self.samples_s)} repeat{'s' if len(self.samples_s) > 1 else ''}"
        return f"{depth}b = {self.b}: {middle:.2f} ms a token ({low:.2f}-{high:.2f}), {repeats}"


async def curve(
    client: Client, model: str, settings: Settings, draft_depth: int, tell: Callable[[str], None]
) -> list[Measured]:
    """The points of one engine, for each batch size; `model` is the name it serves."""
    prompts = _prompts(settings)
    points = []
    for b in settings.batch_sizes:
        await _decode(client, model, list(itertools.islice(prompts, b)), min(WARM_UP_TOKENS, settings.tokens))
        taus, a_step, drafts = [], [], []
        for _ in range(settings.repeats):
            done = await _decode(client, model, list(itertools.islice(prompts, b)), settings.tokens)
            _check(done, b, settings.tokens, draft_depth)
            taus.append(done.decode_s / (b * (settings.tokens - 1)))
            a_step.append(done.tokens / done.steps)
            drafts.append(_verifications(done))
        counts = tuple(map(sum, zip(*drafts, strict=True)))
        points.append(Measured(b, draft_depth, tuple(taus), statistics.mean(a_step), counts))
        tell(str(points[-1]))
    return points


async def _decode(client: Client, model: str, prompts: list[Prompt], tokens: int) -> Counters:
    """What the engine counted while it decoded these prompts."""
    before = await client.counters()
    await client.generate(model, prompts, tokens)
    return await client.counters(before, len(prompts)) - before


def _verifications(done: Counters) -> tuple[int, ...]:
    """How many accepted exactly 0, 1, 2, ... drafts; the engine counts those that accepted so many or more."""
    if not done.accepted:
        return ()
    at_least = (done.verifications, *done.accepted, 0.0)
    return tuple(round(more - fewer) for more, fewer in pairwise(at_least))


def _check(done: Counters, b: int, tokens: int, draft_depth: int) -> None:
    """Raise EngineError if the b requests did not decode at once, and alone."""
    if done.requests != b or done.tokens != b * tokens or done.steps < 1:
        raise EngineError(f"at b = {b} the engine had other requests too: it must be idle to be measured")
    if draft_depth != len(done.accepted):
        raise EngineError(f"the engine drafts {len(done.accepted)} tokens at once, not {draft_depth} (--draft-depths)")
    if done.preemptions:
        raise EngineError(f"at b = {b} the engine preempted requests: it needs more KV cache, or smaller batches")
    running = done.tokens / done.steps
    if draft_depth == 0 and running < TOGETHER * b:
        raise EngineError(
            f"only {running:.1f} of b = {b} requests decoded at once: raise the engine's --max-num-seqs or KV cache, "
            f"or --tokens = {tokens} if that is short"
        )


def _prompts(settings: Settings) -> Iterator[Prompt]:
    """Without end: those given, again and again, or random ones, each unlike the others."""
    if settings.prompts:
        yield from itertools.cycle(settings.prompts)
    rng = random.Random(0)
    while True:
        yield rng.choices(TOKEN_IDS, k=settings.prompt_tokens)
