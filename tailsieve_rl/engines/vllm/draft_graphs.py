"""CUDA graphs for every draft depth in use. Pure: no vLLM here.

A step of n requests that each verify k drafts runs on n (k + 1) tokens. vLLM 0.30 (its second model runner) captures
graphs for the depths that its start-up schedule by batch size mentions, at the sizes that suit the batches at which it
mentions them. So the schedule must mention each depth that will ever be set, and the sizes must be given, since any
depth may meet any batch. (Its first model runner, `VLLM_USE_V2_MODEL_RUNNER=0`, captures pieces only, if the depth may
change.)
"""

from __future__ import annotations

from collections.abc import Collection

from tailsieve_rl.input_error import InputError

CEILING = 512
"""Tokens of the largest graph, vLLM's own limit: above it, the computing outweighs the launching."""

STEPS = ((8, 64), (16, 128), (32, 256), (64, CEILING))
"""Batches are captured in steps of so many requests up to so many: a batch is padded by a fifth of it at most."""


def schedule(depths: Collection[int], max_num_seqs: int) -> list[list[int]]:
    """vLLM's `num_speculative_tokens_per_batch_size`, [first, last, depth] each, that mentions every depth.

    Which batch it gives which depth does not matter: the scheduler of `draft_depth.py` has its own.

    Raises:
        InputError: if there are more depths than batch sizes.
    """
    ordered = sorted(set(depths))
    if len(ordered) > max_num_seqs:
        raise InputError(
            f"max_num_seqs = {max_num_seqs} is too small to name {len(ordered)} draft depths in a schedule"
        )
    entries = [[b, b, depth] for b, depth in enumerate(ordered, start=1)]
    entries[-1][1] = max_num_seqs
    return entries


def capture_sizes(depths: Collection[int], max_num_seqs: int, ceiling: int = CEILING) -> list[int]:
    """Sizes in tokens, ascending, at which graphs serve any batch at any of the depths."""
    return sorted(
        {
            requests * (depth + 1)
            for depth in depths
            for requests in _batches(max_num_seqs)
            if requests * (depth + 1) <= ceiling
        }
    )


def _batches(max_num_seqs: int) -> list[int]:
    found = {1, 2, 4, max_num_seqs}
    start = 0
    for step, end in STEPS:
        found.update(range(start + step, end + 1, step))
        start = end
    return sorted(requests for requests in found if requests <= max_num_seqs)
