"""Our vLLM server on a real tiny CPU engine: aborts are verified, stops are exact, sampling parameters arrive."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WEIGHTS = 7
LONG = 400
PROMPT = [5, 6, 7, 8]


def build_model(folder: Path) -> None:
    """A random Qwen3 whose vocabulary is the 256 bytes and three special tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=512,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder)


def verl_config(model: Path) -> Any:
    from hydra import compose, initialize_config_module

    rollout = "actor_rollout_ref.rollout"
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"actor_rollout_ref.model.path={model}",
                f"{rollout}.name=vllm",
                f"{rollout}.tensor_model_parallel_size=1",
                f"{rollout}.dtype=float32",
                f"{rollout}.enforce_eager=true",
                f"{rollout}.free_cache_engine=false",
                f"++{rollout}.enable_sleep_mode=false",
                f"{rollout}.load_format=auto",
                f"{rollout}.max_model_len=512",
                f"{rollout}.max_num_seqs=32",
                f"{rollout}.max_num_batched_tokens=2048",
            ],
        )


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Awaitable[Any]], Any]]:
    """The engine belongs to one event loop, so all tests share it."""
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


@pytest.fixture(scope="module")
def server(run: Callable[[Awaitable[Any]], Any]) -> Iterator[Any]:
    """The server class itself, without an actor around it, so that tests can look into its engine."""
    os.environ.setdefault("VERL_USE_EXTERNAL_MODULES", "tailsieve_rl.plugin")
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # for `in_core`, which sends a function to the engine
    import ray
    from verl.workers.rollout.replica import RolloutMode

    from tailsieve_rl.engines.vllm.server import TailSieveVLLMServer

    folder = Path(tempfile.mkdtemp(prefix="ts", dir="/tmp"))
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(folder / "ray"), logging_level="ERROR")

    async def start() -> Any:
        config = verl_config(folder / "model").actor_rollout_ref
        server = TailSieveVLLMServer(
            config=config.rollout,
            model_config=config.model,
            rollout_mode=RolloutMode.STANDALONE,
            workers=[],
            replica_rank=0,
            node_rank=0,
            gpus_per_node=1,
            nnodes=1,
            cuda_visible_devices="0",
        )
        await server.launch_server()
        await server.set_global_steps(WEIGHTS)
        return server

    try:
        build_model(folder / "model")
        server = run(start())
        yield server
        server.engine.shutdown()
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def fresh_id() -> str:
    return uuid.uuid4().hex


def submit(server: Any, request_id: str, **sampling: Any) -> asyncio.Task[Any]:
    parameters = {"temperature": 1.0, "ignore_eos": True, "logprobs": True, "max_tokens": LONG, **sampling}
    return asyncio.create_task(server.generate(list(PROMPT), parameters, request_id))


async def in_core(server: Any) -> set[str]:
    """Requests that the model runner in the engine process still holds, asked of itself."""
    (ids,) = await server.engine.collective_rpc(lambda worker: list(worker.model_runner.requests))
    return set(ids)


async def until(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.005)


def test_an_aborted_request_leaves_the_engine_and_returns_its_tokens_so_far(server: Any, run: Any) -> None:
    async def scenario() -> None:
        victim, other = fresh_id(), fresh_id()
        tasks = submit(server, victim), submit(server, other, max_tokens=60)
        (flight,) = (await until(lambda: bool(server._flights.of(victim))), server._flights.of(victim))[1]
        await until(lambda: flight.tokens > 5)
        report = await server.abort_requests([victim])
        output = await asyncio.wait_for(tasks[0], 1.0)
        assert report["aborted"] == [victim] and not report["remaining"]
        assert output.stop_reason == "aborted"
        assert 5 < len(output.token_ids) == len(output.log_probs) < LONG
        assert report["tokens"][victim] == len(output.token_ids)
        assert len((await tasks[1]).token_ids) == 60
        assert not any(victim in request_id for request_id in await in_core(server))

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
        already_over = {i for i in victims if tasks[i].done()}
        report = await server.abort_requests(victims)
        assert report["remaining"] == []
        assert sorted(report["aborted"] + report["finished"] + report["unknown"]) == sorted(victims)
        for request_id in victims:
            output = await asyncio.wait_for(tasks[request_id], 2.0)
            complete = request_id in report["finished"] or request_id in already_over
            assert (output.stop_reason == "aborted") is not complete
            assert (len(output.token_ids) == lengths[request_id]) or not complete
        for request_id in others:
            assert len((await tasks[request_id]).token_ids) == 24
        assert not server.engine.output_processor.request_states
        assert not (await in_core(server) & set(victims))
        for kind in seen:
            seen[kind] += len(report[kind])  # type: ignore[literal-required]

    async def scenario() -> None:
        for _ in range(40):
            await one_round()

    run(scenario())
    assert all(count > 10 for count in seen.values()), seen


def test_an_id_aborted_before_it_arrives_never_runs(server: Any, run: Any) -> None:
    async def scenario() -> None:
        request_id = fresh_id()
        report = await server.abort_requests([request_id])
        assert report["unknown"] == [request_id]
        output = await submit(server, request_id)
        assert output.stop_reason == "aborted" and output.token_ids == []

    run(scenario())


def test_a_request_held_at_verls_closed_gate_is_aborted_without_ever_running(server: Any, run: Any) -> None:
    async def scenario() -> None:
        await server.abort_all_requests()
        request_id = fresh_id()
        task = submit(server, request_id)
        await until(lambda: server._flights.held_outside() == 1)
        assert (await server.stats())["held"] == 1
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
        ids = [fresh_id() for _ in range(40)]  # max_num_seqs is 32
        tasks = [submit(server, request_id) for request_id in ids]
        await until(lambda: len(server.engine.output_processor.request_states) == 40)
        await asyncio.sleep(0.3)
        stats = await server.stats()
        assert (stats["running"], stats["waiting"]) == (32, 8)
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
        assert len(await ids(max_tokens=9999)) == 512 - len(PROMPT)

    run(scenario())


def test_a_stop_string_ends_the_ids_and_log_probabilities_with_the_text(server: Any, run: Any) -> None:
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput

    async def scenario() -> None:
        tokenizer = server.engine.renderer.tokenizer
        free = await submit(server, fresh_id(), seed=3, max_tokens=200)
        letters = [(i, t) for i, t in enumerate(tokenizer.batch_decode([[t] for t in free.token_ids])) if t.isascii()]
        stop = next(a[1] + b[1] for a, b in zip(letters[20:], letters[21:], strict=False) if b[0] == a[0] + 1)
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
