"""The mathematical reward: verl's real math-verify, in its real processes, on the text before <END>."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest
from verl.utils.reward_score import math_verify

from tailsieve_rl.algorithms import math_reward


@pytest.fixture(scope="module", autouse=True)
def broken_pool() -> Iterator[ProcessPoolExecutor]:
    """A pool in which a process has died, in the place of verl's: what every test here starts from."""
    pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
    with pytest.raises(BrokenProcessPool):
        pool.submit(os._exit, 1).result(timeout=60)
    math_verify._pool = pool
    yield pool
    if math_verify._pool is not None:
        for process in math_verify._pool._processes.values():
            process.kill()
        math_verify._pool.shutdown()
        math_verify._pool = None


def test_a_process_that_died_does_not_make_every_later_answer_wrong(broken_pool):
    assert math_verify.compute_score("\\boxed{18}", "18") == 0.0, "verl has mended this: our cure can go"
    assert score("\\boxed{18}") == 1.0
    assert math_verify._pool is not broken_pool


def score(text: str, truth: str = "18") -> float:
    result = math_reward.compute_score("tailsieve/gsm8k", text, truth, extra_info={"index": 0}, num_turns=2)
    assert set(result) == {"score", "acc"} and result["score"] == result["acc"]
    return result["score"]


@pytest.mark.parametrize(
    ("text", "truth", "right"),
    [
        ("She makes \\boxed{18}", "18", 1.0),
        ("She makes \\boxed{18}<END>", "18", 1.0),
        ("She makes \\boxed{\\frac{36}{2}}<END>", "18", 1.0),
        ("She makes \\boxed{1,000}", "1000", 1.0),
        ("She makes \\boxed{0.50}", "0.5", 1.0),
        ("She makes \\boxed{17}<END>", "18", 0.0),
        ("She makes a lot", "18", 0.0),
    ],
)
def test_an_answer_is_judged_by_its_value(text, truth, right):
    assert score(text, truth) == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("\\boxed{18}<END> Or is it \\boxed{19}?", 1.0),
        ("\\boxed{19}<END> Or is it \\boxed{18}?", 0.0),
        ("<END>\\boxed{18}", 0.0),
        ("\\boxed{18}<END>\\boxed{18}<END>", 1.0),
        ("\\boxed{18}<EN", 1.0),
    ],
)
def test_what_follows_the_end_does_not_count(text, right):
    assert score(text) == right


@pytest.mark.parametrize(
    "text", ["", "<END>", "\\boxed{", "\\boxed{}", "}{" * 500, "\\frac{" * 500, "\x00\ud800", "$" * 1000, "\\boxed{x^"]
)
def test_garbage_scores_zero_and_never_raises(text):
    assert score(text) == 0.0


@pytest.mark.parametrize("truth", ["", "\\frac{", "}", 18])
def test_a_truth_that_cannot_be_read_never_raises(truth):
    assert score("\\boxed{18}", truth) == float(truth == 18)


def test_a_time_out_scores_zero(monkeypatch):
    score("\\boxed{18}")  # start the processes under their own limit
    monkeypatch.setattr(math_reward, "TIMEOUT_S", 0.05)
    begin = time.monotonic()
    assert score("\\boxed{9^{9^{9}}}") == 0.0
    assert time.monotonic() - begin < 4, "math-verify's own limit of 5 s ended it, not ours"


class Verl:
    """verl's function and its pool, in which a text of `deadly` kills a process so many times."""

    def __init__(self, deadly: dict[str, int]):
        self.calls: list[tuple[str, float]] = []
        self.deadly = deadly
        self._pool = None

    def _get_pool(self):
        self._pool = self._pool or SimpleNamespace(_broken=False)
        return self._pool

    def compute_score(self, text: str, truth: str, timeout: float) -> float:
        self.calls.append((text, timeout))
        if self.deadly.get(text, 0) == 0:
            return 1.0
        self.deadly[text] -= 1
        self._get_pool()._broken = True
        return 0.0


@pytest.mark.parametrize(("deaths", "right", "tries"), [(0, 1.0, 1), (1, 1.0, 2), (9, 0.0, 2)])
def test_an_answer_whose_process_dies_is_tried_once_more(monkeypatch, deaths, right, tries):
    verl = Verl({"a": deaths})
    monkeypatch.setattr(math_reward, "math_verify", verl)
    assert score("a") == right
    assert [text for text, _ in verl.calls].count("a") == tries
    assert score("b") == 1.0


def test_starting_the_processes_does_not_count_against_the_first_response(monkeypatch):
    verl = Verl({})
    monkeypatch.setattr(math_reward, "math_verify", verl)
    assert (score("a"), score("b")) == (1.0, 1.0)
    assert verl.calls == [("0", 300.0), ("a", 30.0), ("b", 30.0)]
