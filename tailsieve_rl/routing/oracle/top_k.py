"""Top-k tail isolation: the k longest requests on one replica, the others on a second one (paper 2.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tailsieve_rl.routing.makespan import Floats, replica_time


@dataclass(frozen=True, slots=True)
class TopK:
    """The best isolation of one set of requests.

    Attributes:
        time_s: seconds until both replicas have finished.
        k: longest requests that are isolated; the fewest that reach this time.
    """

    time_s: float
    k: int


def top_k_times(lengths: ArrayLike, tau: ArrayLike) -> Floats:
    """Time of both replicas for every k (paper, Figure 2b).

    Args:
        lengths: (requests,) tokens, in any order.
        tau: (batch sizes,) seconds per token with tau[0] = 0, known up to b = requests.

    Returns:
        (requests + 1,) seconds, for k = 0, 1, ..., requests.

    Raises:
        ValueError: if lengths are negative or not a list, or tau is not known far enough.
    """
    given = np.asarray(lengths, float)
    if given.ndim != 1:
        raise ValueError(f"lengths must be a list of requests, not of shape {given.shape}")
    descending = -np.sort(-given)
    isolated = np.arange(len(given)) < np.arange(len(given) + 1)[:, None]
    tail_s = replica_time(np.where(isolated, descending, 0.0), tau)
    return np.maximum(tail_s, replica_time(np.where(isolated, 0.0, descending), tau))


def best_top_k(lengths: ArrayLike, tau: ArrayLike) -> TopK:
    """The k whose time is the least; arguments and errors as of `top_k_times`."""
    times = top_k_times(lengths, tau)
    k = int(np.argmin(times))
    return TopK(float(times[k]), k)


def fixed_share_time(lengths: ArrayLike, tau: ArrayLike, share: float) -> float:
    """Time when a fixed share of the requests is isolated, whatever the lengths (paper A.4: 10%).

    Args:
        lengths, tau: as of `top_k_times`.
        share: 0 to 1; k is the whole number nearest to this share of the requests.

    Returns:
        Seconds.

    Raises:
        ValueError: if the share is not within 0 and 1, or as of `top_k_times`.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share = {share} of the requests must be within 0 and 1")
    times = top_k_times(lengths, tau)
    return float(times[round(share * (len(times) - 1))])
