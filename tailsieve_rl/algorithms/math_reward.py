"""Reward of mathematical problems: verl's math-verify, on the text before `<END>`.

For `reward.custom_reward_function.path=pkg://tailsieve_rl.algorithms.math_reward`. verl verifies in a pool of worker
processes, since math-verify's own time-outs need a process's main thread. Two things of that pool would be
silent zeros here, and are seen to:

* starting it (a process that imports verl) counts against the first response's time: it is started beforehand;
* when a worker is killed (out of memory), Python's pool is broken for good: it is replaced, and the response tried
  once more.
"""

import threading
from concurrent.futures import Executor
from typing import Any

from verl.utils.reward_score import math_verify

END = "<END>"  # the stop string of the prompts; whatever was generated behind it does not count
TIMEOUT_S = 30.0  # a response that takes longer scores 0
START_UP_S = 300.0
TRIES = 2

_lock = threading.Lock()
_started: Executor | None = None  # verl's pool, once it has answered


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Score 1 if the response's answer equals the truth mathematically, else 0. Never raises.

    Args:
        data_source: not used; part of verl's signature, like `extra_info` and `kwargs`.
        solution_str: the decoded response.
        ground_truth: the right answer, as LaTeX without `\\boxed`.
    """
    score = _verify(str(solution_str).partition(END)[0], str(ground_truth))
    return {"score": score, "acc": score}


def _verify(answer: str, truth: str) -> float:
    for _ in range(TRIES):
        pool = _started_pool()
        score = float(math_verify.compute_score(answer, truth, timeout=TIMEOUT_S))
        if not _is_broken(pool):
            return score
    return 0.0


def _started_pool() -> Executor:
    """Return verl's pool of processes, started, and a new one if it is broken."""
    global _started
    with _lock:
        if _is_broken(math_verify._get_pool()):
            math_verify._pool = None
        pool: Executor = math_verify._get_pool()
        if pool is not _started:
            math_verify.compute_score("0", "0", timeout=START_UP_S)
            _started = pool
        return pool


def _is_broken(pool: Executor) -> bool:
    return bool(getattr(pool, "_broken", False))
