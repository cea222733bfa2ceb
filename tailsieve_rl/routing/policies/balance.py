"""Spreading known work evenly: longest first, each piece to the replica with least work so far."""

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]


def longest_first(work: ArrayLike, replicas: int) -> Ints:
    """Replica of each piece of work; the fullest has at most 4/3 of the least work possible (Graham, 1969).

    Pieces alike go in their order, and replicas alike by fewest pieces, then in their order.

    Args:
        work: (pieces,) tokens.
        replicas: 1 or more.

    Returns:
        (pieces,) 0 to replicas - 1.
    """
    pieces = np.asarray(work, np.int64)
    chosen = np.empty(len(pieces), np.int64)
    heap = [(0, 0, replica) for replica in range(replicas)]
    for piece in np.argsort(-pieces, kind="stable").tolist():
        total, count, replica = heap[0]
        chosen[piece] = replica
        heapq.heapreplace(heap, (total + int(pieces[piece]), count + 1, replica))
    return chosen


def evened(work: ArrayLike, replica_of: ArrayLike, replicas: int) -> Ints:
    """An assignment improved until no move of a piece off the fullest replica, and no exchange with it, helps.

    Args:
        work: (pieces,) tokens, as of `longest_first`.
        replica_of: (pieces,) the assignment to start from.
        replicas: as of `longest_first`.

    Returns:
        (pieces,) 0 to replicas - 1.
    """
    pieces, chosen = np.asarray(work, np.int64), np.array(replica_of, np.int64)
    total = np.bincount(chosen, pieces, replicas).astype(np.int64)
    while True:
        fullest = int(np.argmax(total))
        own, others = np.flatnonzero(chosen == fullest), np.flatnonzero(chosen != fullest)
        # A replica may also give a piece and get none: one exchange with nothing for each replica.
        gets = np.concatenate([pieces[others], np.zeros(replicas, np.int64)])
        partner = np.concatenate([chosen[others], np.arange(replicas)])
        shift = pieces[own, None] - gets
        fuller = np.where(shift > 0, np.maximum(total[fullest] - shift, total[partner] + shift), total[fullest])
        fuller[:, partner == fullest] = total[fullest]
        if not fuller.size or fuller.min() >= total[fullest]:
            return chosen
        give, get = divmod(int(np.argmin(fuller)), len(gets))
        moved, other = shift[give, get], partner[get]
        chosen[own[give]] = other
        if get < len(others):
            chosen[others[get]] = fullest
        total[[fullest, other]] += [-moved, moved]
