"""The language of the made checkpoints: a chain of tokens.

Every token has one successor; the bytes form one cycle, and a special token leads into it. A target gives the successor
the probability `certainty` at temperature 1, on the average over the chain (its layers have random weights, by which
the context moves the probabilities), and shares the rest among the others.

A drafter of acceptance `a` continues as the target does after a share `a` of the bytes. After the rest, chosen at
random once for all, it *misreads*: it takes the token for its predecessor, and so drafts the token again, as certain as
ever. A drafted token whose predecessors were accepted is then accepted with a probability p of about

    a               under greedy decoding; also when sampling, with drafts that are sampled too
                    (`draft_sample_method=probabilistic`), less what the context moves,
    a x certainty   when sampling at temperature 1 with greedy drafts, vLLM's default,

and with D drafted tokens a step gives 1 + p + p^2 + ... + p^D tokens on the average.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.checkpoints.tokenizer import BYTES, VOCABULARY
from tailsieve_rl.input_error import InputError

Tokens = NDArray[np.int64]

CHAIN_SEED = 0
"""One chain for all checkpoints: any drafter knows any target's language."""


def successors() -> Tokens:
    """The successor of each token."""
    cycle = np.random.default_rng(CHAIN_SEED).permutation(BYTES)
    found = np.empty(VOCABULARY, dtype=np.int64)
    found[cycle] = np.roll(cycle, -1)
    found[BYTES:] = cycle[: VOCABULARY - BYTES]
    return found


def reading(acceptance: float) -> Tokens:
    """The token that a drafter takes each token for: itself, or, if it misreads it, its predecessor."""
    if not 0 <= acceptance <= 1:
        raise InputError(f"acceptance = {acceptance:g} must lie between 0 and 1")
    read = np.arange(VOCABULARY)
    order = np.random.default_rng(CHAIN_SEED + 1).permutation(BYTES)
    misread = order[: BYTES - round(acceptance * BYTES)]
    predecessors = np.argsort(successors()[:BYTES])
    read[misread] = predecessors[misread]
    return read


def walk(start: Tokens, length: int) -> Tokens:
    """The chain from each token of `start`, (len(start), length)."""
    following = successors()
    steps = [start]
    for _ in range(length - 1):
        steps.append(following[steps[-1]])
    return np.stack(steps, axis=1)
