"""Reward of the countdown walk, for ``reward.custom_reward_function.path=examples/countdown/reward.py``.

verl decodes a response with ``skip_special_tokens=True``, so that ``<|im_end|>`` is already gone here. This file
imports nothing of ours: verl loads it by its path, alone.
"""

import re
from typing import Any

_LAST_ANSWER = re.compile(r"(?:^|\s)answer (\d+)(?:\s*<\|im_end\|>)?\s*$")


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Score 1 if the response ends with the right answer, else 0.

    A response that says ``wait`` and walks again is judged by its last answer alone; one that is cut in the middle of
    a walk has none and scores 0.

    Args:
        data_source: Not used; part of verl's signature, like ``extra_info`` and ``kwargs``.
        solution_str: The decoded response.
        ground_truth: The right answer, a decimal number.
    """
    match = _LAST_ANSWER.search(solution_str)
    correct = float(match is not None and int(match.group(1)) == int(ground_truth))
    return {"score": correct, "acc": correct}
