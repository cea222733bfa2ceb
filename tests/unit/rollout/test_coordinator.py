"""The coordinator's events, with engines that answer at once: what it accepts, refuses, aborts, retries.

Real engines meet it in tests/e2e.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tailsieve_rl.rollout.coordinator import Coordinator
from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.outcome import ResponseStatus
from tailsieve_rl.routing.plan import plan_step
from tailsieve_rl.routing.policies import TwoPool
from tailsieve_rl.routing.step import Verdict

VERSION = 4


class _Method:
    def __init__(self, answer: Callable[..., Any]):
        self._answer = answer

    def remote(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        async def call() -> Any:
            return self._answer(*args, **kwargs)

        return call()


class _Engine:
    """What the coordinator asks of a server actor."""

    def __init__(self, version: int = VERSION):
        self.aborted: list[str] = []
        self.remaining: list[str] = []
        self.stats = _Method(lambda: {"global_steps": version})
        self.clear_kv_cache = _Method(lambda: None)
        self.abort_requests = _Method(self._abort)
        self.asked: list[Any] = []
        self.hold = _Method(lambda: self.asked.append("hold"))
        self.arrived = _Method(lambda calls: self.asked.append(calls))
        self.start = _Method(lambda: self.asked.append("start"))
        self.depths: list[int] = []
        self.deepest = 9
        self.set_draft_depth = _Method(self._draft)

    def _draft(self, depth: int) -> int:
        self.depths.append(min(depth, self.deepest))
        return self.depths[-1]

    def _abort(self, ids: list[str], timeout_s: float) -> dict[str, Any]:
        self.aborted += ids
        return {"remaining": self.remaining}


class _Step:
    """Two replicas, one tail group, three fresh ones of two responses, one to be left over."""

    def __init__(self, retries: int = 1, watchdog_s: float = 60.0):
        self.engines = {"a": _Engine(), "b": _Engine()}
        self.coordinator = Coordinator(self.engines, {})
        self.limits = (TwoPool(Fixed(Allocation(1, 1))), retries, watchdog_s)
        self.plan = plan_step(
            step=5, responses=2, tail=[("t", 2)], fresh=["x", "y", "z"], q_next=1, m=1, replicas=["a", "b"]
        )

    async def begin(self) -> Coordinator:
        await self.coordinator.configure(*self.limits)
        index = {group.uid: i for i, group in enumerate(self.plan.groups)}
        assert await self.coordinator.begin_step(self.plan, index, 0.0) == VERSION
        return self.coordinator

    async def acquire(self, uid: str, session: int, attempt: int = 1, retry: int = 0, turn: int = 0) -> str | None:
        call = f"{uid}.{session}.{retry}.{turn}"
        return await self.coordinator.acquire(call, uid, session, attempt, retry, 3)

    async def finish(self, uid: str, session: int, attempt: int = 1, retry: int = 0, tokens: int = 7) -> Verdict:
        await self.coordinator.release(f"{uid}.{session}.{retry}.0", tokens)
        return await self.coordinator.response_finished(uid, session, attempt, retry, tokens, (VERSION, VERSION), 0.1)

    async def run_group(self, uid: str, attempt: int = 1) -> None:
        for session in (0, 1):
            await self.acquire(uid, session, attempt)
        for session in (0, 1):
            await self.finish(uid, session, attempt)
        await self.coordinator.group_published(uid)


def test_a_step_ends_with_its_groups_and_leaves_the_slowest_over() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        await step.acquire("z", 0)
        for uid, attempt in (("y", 1), ("t", 2), ("x", 1)):
            await step.run_group(uid, attempt)
        await asyncio.sleep(0.01)
        await coordinator.release("z.0.0.0", 4)
        outcome = await asyncio.wait_for(coordinator.wait_step(), 1)
        assert step.engines["b"].aborted == ["z.0.0.0"]
        assert {g.uid for g in outcome.consumed} == {"t", "x", "y"} and outcome.candidates == ("z",)
        [aborted] = [r for r in outcome.records if r.status is ResponseStatus.ABORTED]
        assert (aborted.uid, aborted.response_tokens) == ("z", 4)

    asyncio.run(scenario())


def test_the_step_waits_until_the_aborted_calls_have_returned() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        await step.acquire("z", 0)
        for uid, attempt in (("x", 1), ("y", 1), ("t", 2)):
            await step.run_group(uid, attempt)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(coordinator.wait_step()), 0.05)
        await coordinator.release("z.0.0.0", 0)
        await asyncio.wait_for(coordinator.wait_step(), 1)

    asyncio.run(scenario())


def test_an_engine_that_keeps_an_aborted_request_fails_the_step() -> None:
    async def scenario() -> None:
        step = _Step()
        step.engines["b"].remaining = ["z.0.0.0"]
        coordinator = await step.begin()
        await step.acquire("z", 0)
        for uid in ("x", "y"):
            await step.run_group(uid)
        with pytest.raises(StepFailed, match="still in an engine"):
            await asyncio.wait_for(coordinator.wait_step(), 1)

    asyncio.run(scenario())


def test_a_candidate_gets_no_server_any_more_and_its_late_response_is_refused() -> None:
    async def scenario() -> None:
        step = _Step()
        await step.begin()
        await step.acquire("z", 0)
        for uid in ("x", "y"):
            await step.run_group(uid)
        assert await step.acquire("z", 1) is None
        assert await step.finish("z", 0) is Verdict.REFUSED

    asyncio.run(scenario())


def test_an_older_attempt_is_refused_and_counted() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        assert await step.acquire("t", 0, attempt=1) is None
        assert await step.finish("t", 0, attempt=1) is Verdict.REFUSED
        for uid, attempt in (("x", 1), ("y", 1), ("t", 2)):
            await step.run_group(uid, attempt)
        outcome = await asyncio.wait_for(coordinator.wait_step(), 1)
        assert outcome.refused == 2

    asyncio.run(scenario())


def test_all_turns_of_a_response_stay_on_one_replica_whatever_the_load() -> None:
    async def scenario() -> None:
        step = _Step()
        await step.begin()
        first = await step.acquire("x", 0)
        assert first == "b"
        assert {await step.acquire("x", 0, turn=turn) for turn in (1, 2, 3)} == {first}

    asyncio.run(scenario())


def test_a_failed_response_is_retried_within_the_bound_and_then_fails_the_step() -> None:
    async def scenario() -> None:
        step = _Step(retries=1)
        coordinator = await step.begin()
        await step.acquire("x", 0)
        assert await coordinator.response_failed("x", 0, 1, 0, "boom", False)
        await step.acquire("x", 0, retry=1)
        assert not await coordinator.response_failed("x", 0, 1, 1, "boom", False)
        with pytest.raises(StepFailed, match=r"response 0 of group x failed 2 times.*boom"):
            await coordinator.wait_step()

    asyncio.run(scenario())


def test_a_try_that_was_given_up_is_refused_when_it_finishes_after_all() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        await step.acquire("x", 0)
        assert await coordinator.response_failed("x", 0, 1, 0, "boom", False)
        await step.acquire("x", 0, retry=1)
        assert await step.finish("x", 0) is Verdict.REFUSED
        assert await step.finish("x", 0, retry=1) is Verdict.WAITING

    asyncio.run(scenario())


def test_after_a_replica_died_its_responses_go_to_another_one() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        assert await step.acquire("x", 0) == "b"
        assert await coordinator.response_failed("x", 0, 1, 0, "actor died", True)
        assert await step.acquire("x", 0, retry=1) == "a"
        assert await coordinator.alive() == ["a"]

    asyncio.run(scenario())


def test_a_response_of_other_weights_fails_the_step() -> None:
    async def scenario() -> None:
        step = _Step()
        coordinator = await step.begin()
        await step.acquire("x", 0)
        verdict = await coordinator.response_finished("x", 0, 1, 0, 5, (VERSION - 1, VERSION), None)
        assert verdict is Verdict.REFUSED
        with pytest.raises(StepFailed, match=r"weight versions \(3, 4\)"):
            await coordinator.wait_step()

    asyncio.run(scenario())


def test_a_step_does_not_begin_while_replicas_carry_different_weights() -> None:
    async def scenario() -> None:
        step = _Step()
        step.engines["b"].stats = _Engine(version=VERSION - 1).stats
        with pytest.raises(StepFailed, match="different weight versions"):
            await step.begin()

    asyncio.run(scenario())


def test_the_watchdog_says_what_the_step_waits_for() -> None:
    async def scenario() -> None:
        step = _Step(watchdog_s=0.05)
        coordinator = await step.begin()
        await step.acquire("x", 0)
        with pytest.raises(StepFailed, match=r"nothing happened for 0.05 s.*fresh 0/2.*'x': \[0, 1\]"):
            await asyncio.wait_for(coordinator.wait_step(), 2)

    asyncio.run(scenario())


def test_validation_goes_to_the_least_loaded_replica() -> None:
    async def scenario() -> None:
        coordinator = (step := _Step()).coordinator
        await coordinator.configure(*step.limits)
        chosen = [await coordinator.acquire_validation(f"v{i}") for i in range(4)]
        assert chosen == ["a", "b", "a", "b"]

    asyncio.run(scenario())


def test_a_request_from_a_client_without_groups_is_refused_by_name() -> None:
    with pytest.raises(StepFailed, match="no group"):
        Coordinator({"a": _Engine()}, {}).acquire_server("request")


def test_emulated_engines_begin_together_once_every_call_of_the_step_is_on_its_way() -> None:
    async def scenario() -> None:
        step = _Step()
        step.limits = (*step.limits, 0.001)
        coordinator = await step.begin()
        engines = step.engines.values()
        assert [engine.asked for engine in engines] == [["hold"], ["hold"]]
        everyone = [(uid, session, 2 if uid == "t" else 1) for uid in "txyz" for session in (0, 1)]
        for uid, session, attempt in everyone[:-1]:
            await step.acquire(uid, session, attempt)
        await asyncio.sleep(0.01)
        assert [engine.asked for engine in engines] == [["hold"], ["hold"]]
        await step.acquire(*everyone[-1])
        await asyncio.sleep(0.01)
        assert [engine.asked for engine in engines] == [["hold", 2, "start"], ["hold", 6, "start"]]
        await coordinator.release("x.0.0.0", 7)
        await coordinator.response_finished("x", 0, 1, 0, 7, (VERSION, VERSION), 0.0, 3.25)
        assert (await coordinator.step_extras())["emulation_lag_s"] > 1.0
        for uid, session, attempt in everyone:
            if (uid, session) != ("x", 0) and uid != "z":
                await coordinator.release(f"{uid}.{session}.0.0", 7)
                await coordinator.response_finished(uid, session, attempt, 0, 7, (VERSION, VERSION), 0.0, 2.0)
        for uid in "txy":
            await coordinator.group_published(uid)
        for session in (0, 1):
            await coordinator.release(f"z.{session}.0.0", 1)
        outcome = await asyncio.wait_for(coordinator.wait_step(), 1)
        assert (outcome.gen_time_s, outcome.tail_time_s) == (3.25, 2.0)
        assert {record.dispatch_s for record in outcome.records} == {0.0}

    asyncio.run(scenario())


def test_engines_draft_as_deep_as_their_pool_and_are_told_only_of_changes() -> None:
    async def scenario() -> None:
        step = _Step()
        step.plan = replace(step.plan, depths=DraftDepths(tail=4, bulk=1))
        await step.coordinator.configure(*step.limits, drafts=True)
        for plan in (step.plan, step.plan, replace(step.plan, depths=DraftDepths(tail=4, bulk=2))):
            await step.coordinator.begin_step(plan, {group.uid: 0 for group in plan.groups}, 0.0)
        assert step.engines["a"].depths == [4] and step.engines["b"].depths == [1, 2]

    asyncio.run(scenario())


def test_an_engine_that_does_not_take_its_depth_fails_the_step() -> None:
    async def scenario() -> None:
        step = _Step()
        step.engines["a"].deepest = 3
        step.plan = replace(step.plan, depths=DraftDepths(tail=4))
        await step.coordinator.configure(*step.limits, drafts=True)
        with pytest.raises(StepFailed, match="replica a drafts 3 tokens, not 4 as told"):
            await step.coordinator.begin_step(step.plan, {}, 0.0)

    asyncio.run(scenario())


def test_drafts_of_all_calls_of_a_response_are_in_its_record() -> None:
    async def scenario() -> None:
        step = _Step()
        step.plan = replace(step.plan, depths=DraftDepths(bulk=2))
        coordinator = await step.begin()
        await step.acquire("x", 0)
        await step.acquire("x", 0, turn=1)
        await coordinator.release("x.0.0.0", 5, 8, (2, 1, 1, 0, 0))  # engines count up to their largest depth
        await coordinator.release("x.0.0.1", 2, 2, (1,))
        assert coordinator._run is not None
        [record] = coordinator._run.outcome().records
        assert (record.draft_depth, record.drafted_tokens, record.accepted) == (2, 10, (3, 1, 1))
        assert record.accepted_tokens == 3

    asyncio.run(scenario())
