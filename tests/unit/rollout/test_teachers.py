"""A response is handed to its teacher once it has finished, again when that fails, and never twice."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tailsieve_rl.rollout.worker import TailSieveAgentLoopWorker, _VerlWorker


class Teacher:
    """In the place of verl's call: fails as often as it is told to."""

    def __init__(self, failures: int):
        self.failures, self.asked = failures, 0

    async def __call__(self, _worker: Any, output: Any, prompt_ids: Any, response_ids: Any, *_: Any, **__: Any) -> None:
        self.asked += 1
        if self.asked <= self.failures:
            raise ConnectionError("the teacher is busy")
        output.extra_fields["teacher_logprobs"] = [-0.5] * (len(prompt_ids) + len(response_ids))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def no_reward(*_: Any, **__: Any) -> None:
        return None

    monkeypatch.setattr(_VerlWorker, "_compute_score", no_reward)
    made = object.__new__(TailSieveAgentLoopWorker)
    made._settings = SimpleNamespace(retries=2)
    return made


def scored(worker: Any, teacher: Teacher, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def ask(self: Any, *args: Any, **kwargs: Any) -> None:
        await teacher(self, *args, **kwargs)

    monkeypatch.setattr(_VerlWorker, "_compute_teacher_logprobs", ask)
    output = SimpleNamespace(prompt_ids=[1, 2], response_ids=[3], extra_fields={})
    asyncio.run(worker._score([output], {}))
    return output


def test_a_teacher_that_fails_is_asked_again(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    output = scored(worker, Teacher(failures=2), monkeypatch)
    assert output.extra_fields["teacher_logprobs"] == [-0.5] * 3


def test_a_teacher_that_keeps_failing_ends_the_response(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError, match="busy"):
        scored(worker, Teacher(failures=3), monkeypatch)


def test_verls_own_call_at_publication_finds_it_done(worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    teacher = Teacher(failures=0)
    output = scored(worker, teacher, monkeypatch)
    call = worker._compute_teacher_logprobs(
        output, prompt_ids=[1, 2], response_ids=[3], validate=False, sample_kwargs={}
    )
    asyncio.run(call)
    assert teacher.asked == 1
