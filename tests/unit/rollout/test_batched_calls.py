"""Calls of one moment travel in one message, and each gets its own answer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tailsieve_rl.rollout.batched_calls import BatchedCalls


class _Method:
    def __init__(self, answer: Callable[[list[tuple[Any, ...]]], Any]):
        self._answer, self.messages = answer, []  # type: ignore[var-annotated]

    def remote(self, calls: list[tuple[Any, ...]]) -> Coroutine[Any, Any, Any]:
        self.messages.append(list(calls))

        async def answer() -> Any:
            return self._answer(calls)

        return answer()


class _Coordinator:
    def __init__(self) -> None:
        self.acquire_many = _Method(self._acquire)
        self.release_many = _Method(lambda calls: None)
        self.error: Exception | None = None

    def _acquire(self, calls: list[tuple[Any, ...]]) -> list[str]:
        if self.error is not None:
            raise self.error
        return [f"replica of {call[0]}" for call in calls]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_calls_of_one_moment_travel_together_and_later_ones_after_them() -> None:
    async def scenario() -> None:
        coordinator = _Coordinator()
        calls = BatchedCalls(coordinator)
        found = await asyncio.gather(*(calls.acquire(name, 1) for name in "abc"))
        assert found == ["replica of a", "replica of b", "replica of c"]
        assert await calls.acquire("d", 2) == "replica of d"
        assert coordinator.acquire_many.messages == [[("a", 1), ("b", 1), ("c", 1)], [("d", 2)]]
        for name in "ab":
            calls.release(name, 7)
        await asyncio.sleep(0)
        assert coordinator.release_many.messages == [[("a", 7), ("b", 7)]]

    asyncio.run(scenario())


def test_a_coordinator_that_is_gone_fails_every_call_that_waited() -> None:
    async def scenario() -> None:
        coordinator = _Coordinator()
        coordinator.error = RuntimeError("the actor died")
        calls = BatchedCalls(coordinator)
        found = await asyncio.gather(calls.acquire("a"), calls.acquire("b"), return_exceptions=True)
        assert [str(error) for error in found] == ["the actor died"] * 2

    asyncio.run(scenario())


def test_a_cancelled_response_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        calls = BatchedCalls(_Coordinator())
        gone, other = (asyncio.create_task(calls.acquire(name)) for name in "ab")
        await asyncio.sleep(0)
        gone.cancel()
        assert await other == "replica of b"
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(scenario())
