"""Where a response ends when a stop string ended it. Pure: no vLLM here."""

from __future__ import annotations

from collections.abc import Iterable


def match_end(text: str, stop: str, stop_in_text: bool) -> int:
    """Characters up to the end of the matched stop string.

    `text` is the response as vLLM returns it: cut after the stop string if `stop_in_text`, before it otherwise.
    """
    return len(text) if stop_in_text else len(text) + len(stop)


def tokens_to_keep(text_lengths: Iterable[int], end: int) -> int:
    """How many tokens it takes for the text to reach character `end`.

    `text_lengths[i]` is the length of the text that the first i + 1 tokens decode to. The token that completes the
    stop string is kept whole, the stop string with it: the model must learn to emit it. Tokens wholly after it go:
    vLLM checks for stop strings once an engine step, cuts the text, and leaves the ids of the rest of the step's
    tokens (several with speculative decoding) in the response.
    """
    kept = 0
    for length in text_lengths:
        kept += 1
        if length >= end:
            break
    return kept
