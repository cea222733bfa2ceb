"""Our vLLM server on a real tiny engine: aborts are verified, stops are exact, sampling parameters arrive."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from live.tiny_vllm import MAX_MODEL_LEN, MAX_NUM_BATCHED_TOKENS, MAX_NUM_SEQS, WEIGHTS, serving

LONG = 400
PROMPT = [5, 6, 7, 8]
TWO_BATCHES = 2 * MAX_NUM_BATCHED_TOKENS


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """The engine belongs to one event loop, so all tests share it."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(scope="module")
def server(loop: asyncio.AbstractEventLoop, tensor_parallel: int) -> Iterator[Any]:
    with serving(loop, f"actor_rollout_ref.rollout.tensor_model_parallel_size={tensor_parallel}") as server:
        yield server


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Callable[..., Any]:
    return loop.run_until_complete


def fresh_id() -> str:
    return uuid.uuid4().hex


def submit(server: Any, request_id: str, **sampling: Any) -> asyncio.Task[Any]:
    parameters = {"temperature": 1.0, "ignore_eos": True, "logprobs": True, "max_tokens": LONG, **sampling}
    return asyncio.create_task(server.generate(list(PROMPT), parameters, request_id))


async def in_core(server: Any, request_ids: list[str]) -> list[str]:
    """Those that a model runner, of any rank, still holds, asked of itself; vLLM appends to our ids."""
    by_rank = await server.engine.collective_rpc(lambda worker: list(worker.model_runner.requests))
    held = [internal for own in by_rank for internal in own]
    return [i for i in request_ids if any(internal.startswith(i) for internal in held)]


async def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.005)


def test_an_aborted_request_leaves_the_engine_and_returns_its_tokens_so_far(server: Any, run: Any) -> None:
    async def scenario() -> None:
        victim, other = fresh_id(), fresh_id()
        tasks = submit(server, victim), submit(server, other, max_tokens=60)
        await until(lambda: any(flight.tokens > 5 for flight in server._flights.of(victim)))
        assert await in_core(server, [victim, other]) == [victim, other]
        report = await server.abort_requests([victim])
        output = await asyncio.wait_for(tasks[0], 1.0)
        assert report["aborted"] == [victim] and not report["remaining"]
        assert output.stop_reason == "aborted"
        assert 5 < len(output.token_ids) == len(output.log_probs) < LONG
        assert report["tokens"][victim] == len(output.token_ids)
        assert len((await tasks[1]).token_ids) == 60
        assert await in_core(server, [victim]) == []

    run(scenario())


def test_no_aborted_request_survives_under_load(server: Any, run: Any) -> None:
    """Aborts come at any moment: before the call arrives, while vLLM registers it, while it decodes, at its end."""
    chance = random.Random(0)
    seen = {"aborted": 0, "finished": 0, "unknown": 0}

    async def one_round() -> None:
        victims, others = [fresh_id() for _ in range(16)], [fresh_id() for _ in range(8)]
        lengths = {i: chance.choice([4, 20, LONG]) for i in victims} | dict.fromkeys(others, 24)
        tasks: dict[str, asyncio.Task[Any]] = {}

        async def arrive(request_id: str) -> Any:
            await asyncio.sleep(chance.uniform(0, 0.05))
            return await submit(server, request_id, max_tokens=lengths[request_id])

        for request_id in chance.sample(victims + others, 24):
            tasks[request_id] = asyncio.create_task(arrive(request_id))
        await asyncio.sleep(chance.uniform(0, 0.15))
        called_s = time.time()
        report = await server.abort_requests(victims)
        assert report["remaining"] == []
        assert sorted(report["aborted"] + report["finished"] + report["unknown"]) == sorted(victims)
        for request_id in victims:
            output = await asyncio.wait_for(tasks[request_id], 2.0)
            over_before = request_id in report["unknown"] and output.extra_fields["tailsieve_end_s"] <= called_s
            complete = request_id in report["finished"] or over_before
            assert output.stop_reason == ("completed" if complete else "aborted")
            assert (len(output.token_ids) == lengths[request_id]) or not complete
            assert request_id not in report["unknown"] or complete or output.token_ids == []
        for request_id in others:
            assert len((await tasks[request_id]).token_ids) == 24
        assert not server.engine.output_processor.request_states
        assert await in_core(server, victims) == []
        for kind in seen:
            seen[kind] += len(report[kind])  # type: ignore[literal-required]

    async def scenario() -> None:
        for _ in range(40):
            await one_round()

    run(scenario())
    assert seen["aborted"] > 200 and seen["unknown"] > 50, seen


def test_an_id_aborted_before_it_arrives_never_runs(server: Any, run: Any) -> None:
    async def scenario() -> None:
        request_id = fresh_id()
        report = await server.abort_requests([request_id])
        assert report["unknown"] == [request_id]
        output = await submit(server, request_id)
        assert output.stop_reason == "aborted" and output.token_ids == []

    run(scenario())


def test_a_request_that_arrives_while_generation_is_paused_is_aborted_without_ever_running(
    server: Any, run: Any
) -> None:
    """verl 0.9.1 holds it before the engine, verl 0.9.0 lets it in, where it waits."""

    async def scenario() -> None:
        await server.abort_all_requests()
        request_id = fresh_id()
        task = submit(server, request_id)
        async with asyncio.timeout(10.0):
            while (stats := await server.stats())["waiting"] + stats["held"] == 0:
                await asyncio.sleep(0.005)
        assert (stats["running"], stats["waiting"] + stats["held"]) == (0, 1)
        report = await server.abort_requests([request_id])
        assert report["aborted"] == [request_id] and report["seconds"] < 1.0
        await server.resume_generation()
        output = await asyncio.wait_for(task, 2.0)
        assert output.stop_reason == "aborted" and output.token_ids == []
        assert len((await submit(server, fresh_id(), max_tokens=5)).token_ids) == 5

    run(scenario())


def test_verls_own_single_abort_works_and_does_not_mind_an_id_it_does_not_know(server: Any, run: Any) -> None:
    async def scenario() -> None:
        request_id = fresh_id()
        task = submit(server, request_id)
        await until(lambda: any(flight.tokens for flight in server._flights.of(request_id)))
        assert (await server.abort_request(request_id))["aborted"] is True
        assert (await task).stop_reason == "aborted"
        assert (await server.abort_request(fresh_id()))["aborted"] is False

    run(scenario())


def test_a_cancelled_call_leaves_nothing_behind(server: Any, run: Any) -> None:
    async def scenario() -> None:
        request_id = fresh_id()
        task = submit(server, request_id)
        await until(lambda: any(flight.tokens for flight in server._flights.of(request_id)))
        task.cancel()
        await asyncio.wait([task])
        await until(lambda: not server.engine.output_processor.request_states)
        assert server._flights.of(request_id) == []

    run(scenario())


def test_statistics_say_where_requests_are_and_ping_answers_while_the_engine_is_busy(server: Any, run: Any) -> None:
    async def scenario() -> None:
        ids = [fresh_id() for _ in range(MAX_NUM_SEQS + 8)]
        tasks = [submit(server, request_id) for request_id in ids]
        await until(lambda: len(server.engine.output_processor.request_states) == len(ids))
        await asyncio.sleep(0.3)
        stats = await server.stats()
        assert (stats["running"], stats["waiting"]) == (MAX_NUM_SEQS, 8)
        assert stats["global_steps"] == WEIGHTS
        started = time.monotonic()
        assert (await server.ping())["alive"] and time.monotonic() - started < 0.1
        await server.abort_requests(ids)
        await asyncio.gather(*tasks)
        assert (await server.stats())["running"] == 0

    run(scenario())


def test_a_response_tells_its_times_and_the_weights_it_started_under(server: Any, run: Any) -> None:
    async def scenario() -> None:
        before = time.time()
        fields = (await submit(server, fresh_id(), max_tokens=20)).extra_fields
        times = [fields[f"tailsieve_{name}_s"] for name in ("arrival", "first_token", "end")]
        assert before <= times[0] < times[1] < times[2] <= time.time()
        assert fields["min_global_steps"] == fields["global_steps"] == WEIGHTS

    run(scenario())


def test_seed_and_presence_penalty_and_lengths_reach_vllm(server: Any, run: Any) -> None:
    async def scenario() -> None:
        async def ids(**sampling: Any) -> list[int]:
            return list((await submit(server, fresh_id(), **{"max_tokens": 120, **sampling})).token_ids)

        same, again, other = await asyncio.gather(ids(seed=1), ids(seed=1), ids(seed=2))
        assert same == again != other
        spread, plain = await asyncio.gather(ids(seed=1, presence_penalty=2.0), ids(seed=1, presence_penalty=-2.0))
        assert len(set(spread)) > len(set(same)) > len(set(plain))
        assert len(await ids(max_tokens=1)) == 1
        assert len(await ids(max_tokens=9999)) == MAX_MODEL_LEN - len(PROMPT)

    run(scenario())


def test_seeded_requests_whose_prompts_exceed_one_batch_all_finish(server: Any, run: Any) -> None:
    """An engine that cut a seeded request's prompt in two would die: a CPU generator cannot be rewound."""

    async def scenario() -> None:
        prompts = [[5 + i, *([7] * (TWO_BATCHES // MAX_NUM_SEQS))] for i in range(MAX_NUM_SEQS)]
        parameters = {"temperature": 1.0, "ignore_eos": True, "max_tokens": 8}
        calls = [server.generate(p, {**parameters, "seed": i}, fresh_id()) for i, p in enumerate(prompts)]
        assert [len(output.token_ids) for output in await asyncio.gather(*calls)] == [8] * MAX_NUM_SEQS

    run(scenario())


def test_a_stop_string_ends_the_ids_and_log_probabilities_with_the_text(server: Any, run: Any) -> None:
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput

    async def scenario() -> None:
        tokenizer = server.engine.renderer.tokenizer
        free = await submit(server, fresh_id(), seed=3, max_tokens=200)
        letters = [(i, t) for i, t in enumerate(tokenizer.batch_decode([[t] for t in free.token_ids])) if t.isascii()]
        stop = next(a[1] + b[1] for a, b in itertools.pairwise(letters[20:]) if b[0] == a[0] + 1)
        stopped = await submit(server, fresh_id(), seed=3, max_tokens=200, stop=[stop])
        kept = len(stopped.token_ids)
        assert stopped.stop_reason == "completed" and kept < 200
        assert stopped.token_ids == free.token_ids[:kept] and len(stopped.log_probs) == kept
        text = tokenizer.decode(stopped.token_ids)
        assert text.endswith(stop) and text.count(stop) == 1

        # What a speculative step leaves: the text cut, ids beyond the match. The cut must give the ids above.
        overrun = CompletionOutput(0, text[: -len(stop)], free.token_ids[: kept + 4], None, None, stop_reason=stop)
        server.engine._cut_after_stop(overrun, list(PROMPT), SamplingParams(stop=[stop]))
        assert list(overrun.token_ids) == list(stopped.token_ids)

    run(scenario())
