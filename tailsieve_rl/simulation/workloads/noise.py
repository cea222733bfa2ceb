"""Random numbers that belong to a position of the prompt stream, not to the order in which they are asked for.

They are drawn in blocks of prompts, one generator a block, and the latest blocks are kept: a step that moves along the
stream finds nearly all of its numbers there.
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

BLOCK = 512
"""Prompts of a block. Eight steps of 64 groups share one: drawing it costs less than asking NumPy eight times."""

KEPT_BLOCKS = 256
"""Blocks that are kept, 8 MB at eight responses: what a few workloads with two attempts use at once."""


class Stream(IntEnum):
    """What numbers are for; different streams are independent."""

    PROMPT = 0
    RESPONSE = 1


def normals(seed: int, stream: Stream, rows: ArrayLike, columns: int, attempt: int = 0) -> Floats:
    """(rows, columns) standard normal numbers of some positions of the prompt stream.

    Args:
        seed: of the workload, 0 or more.
        stream: what they are for.
        rows: (rows,) positions, 0 or more.
        columns: numbers a position.
        attempt: attempts have numbers of their own.

    Raises:
        ValueError: for a negative position, seed or attempt.
    """
    return _gather(False, seed, stream, rows, columns, attempt)


def uniforms(seed: int, stream: Stream, rows: ArrayLike, columns: int, attempt: int = 0) -> Floats:
    """(rows, columns) numbers in [0, 1); otherwise as `normals`."""
    return _gather(True, seed, stream, rows, columns, attempt)


def of_attempts(attempts: ArrayLike) -> list[tuple[int, NDArray[np.bool_]]]:
    """Each attempt number that occurs, with a mask of its groups: numbers are drawn attempt by attempt."""
    given = np.asarray(attempts)
    return [(int(attempt), given == attempt) for attempt in np.unique(given)]


def _gather(uniform: bool, seed: int, stream: Stream, rows: ArrayLike, columns: int, attempt: int) -> Floats:
    positions = np.asarray(rows)
    if positions.size and positions.min() < 0:
        raise ValueError(f"prompts are positions of 0 or more, not {positions.min()}")
    blocks, inside = np.divmod(positions, BLOCK)
    found = np.empty((len(positions), columns))
    for block in np.unique(blocks):
        here = blocks == block
        found[here] = _block(uniform, seed, stream, int(block), columns, attempt)[inside[here]]
    return found


@lru_cache(maxsize=KEPT_BLOCKS)
def _block(uniform: bool, seed: int, stream: Stream, block: int, columns: int, attempt: int) -> Floats:
    generator = np.random.default_rng([seed, int(stream), int(uniform), block, attempt])
    shape = (BLOCK, columns)
    drawn = generator.random(shape) if uniform else generator.standard_normal(shape)
    drawn.flags.writeable = False
    return drawn
