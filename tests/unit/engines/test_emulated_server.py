"""The emulated server's answers, in one event loop, in compressed time."""

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

import pytest

from tailsieve_rl.engines.emulated.server import EmulatedOutput, EmulatedServer
from tailsieve_rl.engines.emulated.speed import Speed
from tailsieve_rl.routing.draft import geometric

TAU = (0.0, 1.0, 1.5, 2.0)
SPEED = Speed({0: TAU, 2: tuple(seconds / 2 for seconds in TAU)}, geometric(0.5, 2))
SCALE = 0.005


def _run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 10))


async def _server(stretch: int = 1, capacity: int = 3) -> EmulatedServer:
    return EmulatedServer(0, SPEED, capacity, SCALE, stretch)


def _call(server: EmulatedServer, name: str, tokens: int) -> "asyncio.Task[EmulatedOutput]":
    return asyncio.create_task(server.generate([5, 9], {"min_tokens": tokens, "max_tokens": tokens}, name))


def _end_s(output: EmulatedOutput) -> float:
    return output.extra_fields["tailsieve_emulated_end_s"]


def test_held_calls_start_together_and_end_exactly_when_the_model_says() -> None:
    async def scenario() -> None:
        server = await _server()
        await server.hold()
        short, long = _call(server, "a", 4), _call(server, "b", 6)
        await server.arrived(2)
        await asyncio.sleep(0.1)
        assert not short.done()
        await server.start()
        outputs = await asyncio.gather(short, long)
        assert [_end_s(output) for output in outputs] == pytest.approx([6.0, 8.0])
        assert [len(output.token_ids) for output in outputs] == [4, 6] == [len(o.log_probs) for o in outputs]
        assert {output.stop_reason for output in outputs} == {"completed"}

    _run(scenario())


def test_the_wall_time_is_the_emulated_time_times_the_scale() -> None:
    async def scenario() -> None:
        server = await _server()
        loop = asyncio.get_running_loop()
        started = loop.time()
        await _call(server, "a", 40)
        assert 40 * SCALE <= loop.time() - started < 80 * SCALE

    _run(scenario())


def test_a_stretched_token_takes_the_time_of_several() -> None:
    async def scenario() -> None:
        server = await _server(stretch=3)
        await server.hold()
        call = _call(server, "a", 4)
        await server.arrived(1)
        await server.start()
        output = await call
        assert (_end_s(output), len(output.token_ids)) == (pytest.approx(12.0), 4)

    _run(scenario())


def test_an_abort_ends_the_call_at_once_and_refuses_one_that_comes_later() -> None:
    async def scenario() -> None:
        server = await _server()
        call = _call(server, "a", 1000)
        await asyncio.sleep(20 * SCALE)
        report = await server.abort_requests(["a", "later"])
        output = await call
        assert (report["aborted"], report["unknown"], report["remaining"]) == (["a"], ["later"], [])
        assert output.stop_reason == "aborted" and 10 < len(output.token_ids) < 200
        assert report["tokens"]["a"] == len(output.token_ids)
        assert (await _call(server, "later", 5)).stop_reason == "aborted"
        assert (await server.stats())["running"] == 0

    _run(scenario())


def test_a_new_step_forgets_the_refused_ids_of_the_last_one() -> None:
    async def scenario() -> None:
        server = await _server()
        await server.abort_requests(["a"])
        await server.hold()
        await server.start()
        assert (await _call(server, "a", 2)).stop_reason == "completed"

    _run(scenario())


def test_after_abort_all_calls_wait_until_generation_is_resumed() -> None:
    async def scenario() -> None:
        server = await _server()
        running = _call(server, "a", 1000)
        await asyncio.sleep(0.02)
        assert (await server.abort_all_requests())["request_ids"] == ["a"]
        assert (await running).stop_reason == "aborted"
        parked = _call(server, "b", 2)
        await asyncio.sleep(0.05)
        assert not parked.done()
        await server.resume_generation()
        assert (await parked).stop_reason == "completed"

    _run(scenario())


def test_a_rejecting_server_ends_calls_at_once() -> None:
    async def scenario() -> None:
        server = await _server()
        await server.abort_all_requests(reject_request=True)
        assert (await _call(server, "a", 2)).stop_reason == "aborted"

    _run(scenario())


def test_the_weight_version_is_told_by_every_response() -> None:
    async def scenario() -> None:
        server = await _server()
        await server.set_global_steps(7)
        fields = (await _call(server, "a", 2)).extra_fields
        assert (fields["min_global_steps"], fields["global_steps"]) == (7, 7)
        assert (await server.stats())["global_steps"] == 7

    _run(scenario())


def test_a_request_without_a_length_is_refused_by_name() -> None:
    async def scenario() -> None:
        server = await _server()
        with pytest.raises(ValueError, match="replay_lengths"):
            await server.generate([5], {"max_tokens": 9}, "a")

    _run(scenario())


def test_the_server_loads_nothing_heavy() -> None:
    code = (
        "import sys, tailsieve_rl.engines.emulated.server\n"
        "print(*sorted({'torch', 'verl', 'vllm', 'numpy', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_draft_depth_set_while_decoding_changes_the_pace_from_then_on() -> None:
    async def scenario() -> None:
        server = await _server()
        await server.hold()
        call = _call(server, "a", 41)
        await server.arrived(1)
        await server.start()
        await asyncio.sleep(10 * SCALE)
        assert await server.set_draft_depth(2) == 2
        output = await call
        assert 41 / 2 < _end_s(output) < 35  # 41 s without drafts, half of that with them from the start
        # 40 tokens after the first one, 1 + 0.5 + 0.25 a verification
        assert output.extra_fields["spec_num_draft_tokens"] == 2 * 23
        assert output.extra_fields["tailsieve_accepted"] == (11, 6, 6)

    _run(scenario())


def test_a_depth_by_batch_size_decodes_as_the_depth_of_each_batch_size() -> None:
    assert SPEED.table((0, 0, 2, 0)) == (0.0, 1.0, 0.75, 2.0)


def test_a_draft_depth_that_the_profile_lacks_is_refused() -> None:
    async def scenario() -> None:
        server = await _server()
        with pytest.raises(ValueError, match=r"draft depth 3 is not in the emulated profile, which has \[0, 2\]"):
            await server.set_draft_depth(3)

    _run(scenario())
