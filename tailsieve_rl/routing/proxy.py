"""The tail-side proxy of paper 2.4 and Appendix D: why isolating some groups pays, or does not.

For every token of an isolated request it compares what the token costs at the batch size that the request would have
under uniform routing with what it costs in the tail pool. It explains where the optimum moves; it is no makespan.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TailProxy:
    """The parts of the proxy, for each sample.

    Attributes:
        advantage_s: sum over tokens of [tau(b_base) - tau(b_tail)]+, seconds of all requests together.
        penalty_s: sum over tokens of [tau(b_tail) - tau(b_base)]+, likewise.
        work: W_tail, tokens of the isolated requests.
    """

    advantage_s: Floats
    penalty_s: Floats
    work: Floats

    @property
    def gain_s(self) -> Floats:
        """The proxy itself."""
        return self.advantage_s - self.penalty_s


def tail_proxy(
    base: ArrayLike, base_replica: ArrayLike, tail: ArrayLike, tail_replica: ArrayLike, tau: ArrayLike
) -> TailProxy:
    """The proxy of an isolated set under all-admit decoding.

    b(x) of a replica changes only where one of its requests ends, so tokens are counted in runs of equal b.

    Args:
        base: (..., requests) tokens of all requests of the step under uniform routing; the isolated ones come first.
        base_replica: (requests,) their replica.
        tail: (..., isolated) tokens of the isolated requests, in the same order, in the tail pool. Those of `base`
            where both routes are compared on the same generations, as the paper does.
        tail_replica: (isolated,) their replica in the tail pool.
        tau: (batch sizes,) seconds per token, tau[0] = 0; long enough for the fullest replica.

    Raises:
        ValueError: if shapes disagree.
    """
    everyone, isolated = np.asarray(base, np.int64), np.asarray(tail, np.int64)
    home, place = np.asarray(base_replica), np.asarray(tail_replica)
    if everyone.shape[-1] != len(home) or isolated.shape[-1] != len(place) or len(place) > len(home):
        raise ValueError(
            f"{everyone.shape} and {isolated.shape} lengths do not fit {len(home)} and {len(place)} places"
        )
    samples = isolated.shape[:-1]
    rows, others = isolated.reshape(-1, len(place)), everyone.reshape(-1, len(home))
    table = np.asarray(tau, float)
    advantage, penalty = np.zeros((2, len(rows)))
    for sample, (row, other) in enumerate(zip(rows, others, strict=True)):
        for base_at, tail_at in np.unique(np.stack([home[: len(place)], place], axis=-1), axis=0):
            members = row[(home[: len(place)] == base_at) & (place == tail_at)]
            there, here = np.sort(other[home == base_at]), np.sort(row[place == tail_at])
            plus, minus = _parts(members, there, here, table)
            advantage[sample] += plus
            penalty[sample] += minus
    return TailProxy(advantage.reshape(samples), penalty.reshape(samples), isolated.sum(axis=-1).astype(float))


def _parts(members: Ints, there: Ints, here: Ints, tau: Floats) -> tuple[float, float]:
    """Positive and negative part over the tokens of requests that share both replicas; ascending lengths of both."""
    ends = np.unique(np.concatenate([there, here, members]))
    begins = np.concatenate([[0], ends[:-1]])
    # b(x) is the number of requests of at least x tokens; x is any token after the run's beginning.
    base_b = len(there) - np.searchsorted(there, begins, side="right")
    tail_b = len(here) - np.searchsorted(here, begins, side="right")
    running = len(members) - np.searchsorted(np.sort(members), begins, side="right")
    each = running * (ends - begins) * (tau[base_b] - tau[tail_b])
    return float(each[each > 0].sum()), float(-each[each < 0].sum())
