"""Speculation on real engines, at a depth that changes while they decode: nothing that they generate may change.

For each method one engine. What transformers computes for the same tokens is the judge.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.drafting import (
    ACCEPTANCE,
    LARGEST,
    METHODS,
    Method,
    Reference,
    of_tokens,
    prompts,
    uniform_values,
)
from live.tiny_vllm import serving

pytestmark = pytest.mark.speculation

DEPTHS = range(LARGEST + 1)
BY_BATCH_SIZE = tuple(LARGEST if b < 4 else 1 if b < 7 else 0 for b in range(16))
BINS = 20
CRITICAL = 50.8
"""Of chi-square with 19 degrees of freedom: exceeded by chance once in 10,000 times."""


@dataclass
class Engine:
    method: Method
    path: Path
    server: Any
    run: Callable[..., Any]
    reference: Reference

    async def generate(self, prompt: list[int], **sampling: Any) -> Any:
        parameters = {"temperature": 0.0, "ignore_eos": True, "logprobs": True, "max_tokens": 64, **sampling}
        return await self.server.generate(list(prompt), parameters, uuid.uuid4().hex)

    async def all(self, given: list[list[int]], **sampling: Any) -> list[Any]:
        return list(await asyncio.gather(*[self.generate(prompt, **sampling) for prompt in given]))

    async def drafts(self) -> np.ndarray:
        """Drafts, tokens in them, tokens accepted: all so far."""
        counts = await self.server.speculation_stats()
        return np.array([counts[key] for key in ("drafts", "draft_tokens", "accepted_tokens")])

    async def while_switching(self, work: Any, seed: int = 0) -> Any:
        """The result of `work`, done while the depth is set to another every few milliseconds."""
        draw = random.Random(seed)
        task = asyncio.ensure_future(work)
        while not task.done():
            await self.server.set_draft_depth(draw.choice((*DEPTHS, BY_BATCH_SIZE)))
            await asyncio.wait([task], timeout=draw.uniform(0, 0.04))
        return await task


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.name)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    method: Method = request.param
    loop = asyncio.new_event_loop()  # the engine belongs to it
    target, overrides = method.write(tmp_path_factory.mktemp(method.name))
    with serving(loop, *overrides, model=target) as server:
        yield Engine(method, target, server, loop.run_until_complete, Reference(target))
    loop.close()


def test_greedy_output_is_the_same_at_every_depth_and_across_switches(engine: Engine) -> None:
    """Tokens are identical, log-probabilities those of the target: a wrong state would show in them first."""
    given = prompts(8)

    async def scenario() -> None:
        outputs = {}
        for depth in DEPTHS:
            assert await engine.server.set_draft_depth(depth) == depth
            before = await engine.drafts()
            outputs[depth] = await engine.all(given)
            drafts, tokens, accepted = await engine.drafts() - before
            assert (drafts > 0) == (depth > 0)
            assert tokens == depth * drafts if engine.method.exact_depth else tokens <= depth * drafts
            assert accepted >= 0.5 * tokens
        for depth in (0, 1):
            await engine.server.set_draft_depth(depth)
            outputs[f"{depth}, alone"] = [await engine.generate(given[0])]
        assert await engine.server.set_draft_depth(BY_BATCH_SIZE) == BY_BATCH_SIZE
        lengths = [64 - 6 * i for i in range(len(given))]  # fewer and fewer run
        by_batch_size = [engine.generate(p, max_tokens=length) for p, length in zip(given, lengths, strict=True)]
        outputs["by batch size"] = await asyncio.gather(*by_batch_size)
        for round in range(3):
            outputs[f"switching {round}"] = await engine.while_switching(engine.all(given), seed=round)
        expected = [output.token_ids for output in outputs[0]]
        reference = engine.reference.log_probabilities(given, expected)
        for depth, found in outputs.items():
            ends = lengths if depth == "by batch size" else [64] * len(given)
            for output, tokens, probabilities, end in zip(found, expected, reference, ends, strict=False):
                assert output.token_ids == tokens[:end], depth
                error = np.abs(np.array(output.log_probs) - of_tokens(probabilities, tokens)[:end]).max()
                assert error < engine.method.tolerance, depth

    engine.run(scenario())


def test_sampled_tokens_follow_the_targets_probabilities(engine: Engine) -> None:
    """10,240 tokens at temperature 1, half of them while the depth changes, each turned into a value that is uniform
    if the target's probabilities were kept.

    A chi-square test of 20 bins at significance 1e-4. A sampler that moves 3.5 % of the probability between the
    likeliest token, which has 70 %, and the rest is found with probability 0.96; one that moves 2.5 %, with 0.43. Seeds
    are fixed, so that it does not fail by chance.
    """

    async def scenario() -> None:
        given = prompts(128)
        await engine.server.set_draft_depth(LARGEST)
        before = await engine.drafts()
        calls = [engine.generate(p, temperature=1.0, seed=i, max_tokens=80) for i, p in enumerate(given)]
        outputs = await asyncio.gather(*calls[:64])
        outputs += await engine.while_switching(asyncio.gather(*calls[64:]))
        drafts, tokens, accepted = await engine.drafts() - before
        assert drafts > 100 and 0 < accepted < tokens
        responses = [output.token_ids for output in outputs]
        reference = engine.reference.log_probabilities(given, responses)
        values = []
        for i, (output, probabilities) in enumerate(zip(outputs, reference, strict=True)):
            error = np.abs(np.array(output.log_probs) - of_tokens(probabilities, output.token_ids)).max()
            assert error < 3 * engine.method.tolerance  # rare tokens too
            values.append(uniform_values(probabilities, output.token_ids, seed=i))
        histogram, _ = np.histogram(np.concatenate(values), bins=BINS, range=(0, 1))
        assert histogram.sum() == 128 * 80
        expected = histogram.sum() / BINS
        assert ((histogram - expected) ** 2 / expected).sum() < CRITICAL, histogram

    engine.run(scenario())


def test_a_seed_fixes_what_is_sampled_whoever_decodes_beside_it(engine: Engine) -> None:
    if not engine.method.reproducible:
        pytest.skip("vLLM samples these drafts without the request's seed")

    async def scenario() -> None:
        given = prompts(4)
        await engine.server.set_draft_depth(2)
        alone = await engine.generate(given[0], temperature=1.0, seed=5)
        others = [engine.generate(p, temperature=1.0, seed=i) for i, p in enumerate(given[1:])]
        beside, other, *_ = await asyncio.gather(
            engine.generate(given[0], temperature=1.0, seed=5),
            engine.generate(given[0], temperature=1.0, seed=6),
            *others,
        )
        assert alone.token_ids == beside.token_ids != other.token_ids

    engine.run(scenario())


def test_penalties_are_the_same_with_drafts(engine: Engine) -> None:
    async def scenario() -> None:
        found = []
        for depth in (0, LARGEST):
            await engine.server.set_draft_depth(depth)
            found.append(await engine.all(prompts(4), presence_penalty=2.0, frequency_penalty=0.5))
        for without, with_drafts in zip(*found, strict=True):
            assert with_drafts.token_ids == without.token_ids
            assert np.allclose(with_drafts.log_probs, without.log_probs, atol=engine.method.tolerance)

    engine.run(scenario())


def test_a_stop_string_cuts_ids_and_log_probabilities_where_it_ends(engine: Engine) -> None:
    async def scenario() -> None:
        tokenizer = engine.server.engine.renderer.tokenizer
        (prompt,) = prompts(1)
        await engine.server.set_draft_depth(0)
        free = await engine.generate(prompt)
        letters = tokenizer.batch_decode([[token] for token in free.token_ids])
        ends = [i for i, (a, b) in enumerate(itertools.pairwise(letters), 1) if a.isascii() and b.isascii()][:6]
        assert len(ends) == 6
        await engine.server.set_draft_depth(LARGEST)
        for end in ends:
            stopped = await engine.generate(prompt, stop=[letters[end - 1] + letters[end]])
            assert stopped.stop_reason == "completed"
            assert stopped.token_ids == free.token_ids[: end + 1]
            assert np.allclose(stopped.log_probs, free.log_probs[: end + 1], atol=engine.method.tolerance)

    engine.run(scenario())


def test_a_depth_is_set_at_once_while_decoding_and_holds_from_the_next_step(engine: Engine) -> None:
    async def scenario() -> list[float]:
        took = []
        await engine.server.set_draft_depth(LARGEST)
        work = asyncio.gather(*[engine.generate(p, max_tokens=400) for p in prompts(16)])
        await asyncio.sleep(0.2)
        for depth in (1, LARGEST, 2, 1, 0, 1):
            started = time.perf_counter()
            await engine.server.set_draft_depth(depth)
            took.append(time.perf_counter() - started)
            first = await engine.drafts()
            while (settled := await engine.drafts())[0] < first[0] + 16 and not work.done():
                await asyncio.sleep(0.002)  # the step that verifies drafts from before
                if depth == 0 and (await engine.server.stats())["running"]:
                    break
            if depth and engine.method.exact_depth and not work.done():
                while (later := await engine.drafts())[0] < settled[0] + 16 and not work.done():
                    await asyncio.sleep(0.002)
                drafts, tokens, _ = later - settled
                assert tokens == depth * drafts
        assert all(len(output.token_ids) == 400 for output in await work)
        assert (await engine.server.stats())["draft_depth"] == 1
        return took

    took = engine.run(scenario())
    print(f"{engine.method.name}: set_draft_depth took {max(took) * 1e3:.1f} ms at most")


def test_a_depth_beyond_the_largest_is_refused_and_changes_nothing(engine: Engine) -> None:
    async def scenario() -> None:
        await engine.server.set_draft_depth(2)
        for depth in (LARGEST + 1, -1):
            with pytest.raises(ValueError, match=f"{depth} must lie between 0 and {LARGEST}"):
                await engine.server.set_draft_depth(depth)
        assert (await engine.server.speculation_stats())["draft_depth"] == 2

    engine.run(scenario())


def test_an_update_of_the_weights_leaves_the_drafter_its_own_and_shares_the_rest(engine: Engine) -> None:
    """Three updates: the same weights, ones in which every token has another successor, the first again."""
    if engine.method.name not in ("mtp", "dflash"):
        pytest.skip("it shares no weights with the target")

    async def update(successor: int) -> None:
        path = str(engine.path / "model.safetensors")

        def load(worker: Any) -> None:
            from safetensors.torch import load_file

            weights = {name: tensor for name, tensor in load_file(path).items() if not name.startswith("mtp.")}
            rows = weights["lm_head.weight"]
            rows[:256] = rows[:256].roll(successor, 0)  # among the bytes
            worker.reload(list(weights.items()))

        await engine.server.engine.collective_rpc(load)
        await engine.server.clear_kv_cache()

    async def own_weights() -> Any:
        def digest(worker: Any) -> dict[str, float]:
            drafter, target = worker.model_runner.drafter.model, worker.model_runner.get_model()
            assert drafter.model.embed_tokens is target.model.embed_tokens
            assert drafter.lm_head is target.lm_head
            shared = ("lm_head", "embed_tokens")
            own = {n: p for n, p in drafter.named_parameters() if not any(part in n for part in shared)}
            return {name: float(p.double().abs().sum()) for name, p in own.items() if p.numel()}

        (found,) = await engine.server.engine.collective_rpc(digest)
        return found

    async def outcome() -> tuple[list[list[int]], list[list[float]], float]:
        before = await engine.drafts()
        outputs = await engine.all(prompts(8))
        _, tokens, accepted = await engine.drafts() - before
        return [o.token_ids for o in outputs], [o.log_probs for o in outputs], accepted / tokens

    async def scenario() -> None:
        await engine.server.set_draft_depth(LARGEST)
        weights, first = await own_weights(), await outcome()
        assert len(weights) > 5
        await update(0)
        assert await outcome() == first
        await update(1)
        tokens, _, rate = await outcome()
        assert tokens != first[0]
        if engine.method.name == "mtp":  # whose head reads a token; the made DFlash drafter has the chain by heart
            assert abs(rate - first[2]) < 0.2
        await update(0)
        assert await outcome() == first and await own_weights() == weights

    engine.run(scenario())


def test_drafts_are_accepted_as_often_as_the_checkpoint_says(engine: Engine) -> None:
    """Greedy, at depth 3: 1 + a + a^2 + a^3 tokens a step, if the misread tokens lie as chance would have it."""
    if engine.method.name == "ngram":
        pytest.skip("it has no checkpoint")

    async def scenario() -> None:
        await engine.server.set_draft_depth(LARGEST)
        before = await engine.drafts()
        await engine.all(prompts(8), max_tokens=256)  # each once around the chain
        drafts, _, accepted = await engine.drafts() - before
        assert 1 + accepted / drafts == pytest.approx(sum(ACCEPTANCE**i for i in DEPTHS), abs=0.15)

    engine.run(scenario())
