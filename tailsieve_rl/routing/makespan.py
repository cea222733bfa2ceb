"""Exact times of a step under the all-admit decode model (paper 2.1 and Appendix D).

All requests of a replica start together, and b running requests each gain a token every tau(b) seconds. Lengths are
tokens, times are seconds. `tau` is a table by batch size with tau[0] = 0 (DecodeModel.table makes one). Leading axes
are samples: everything is evaluated for all of them at once. A length of 0 is no request, so rows can be padded.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def replica_time(lengths: ArrayLike, tau: ArrayLike) -> Floats:
    """Time of a replica, sum_j L_j (tau(j) - tau(j-1)) with L sorted in descending order (paper 2.1).

    The j-th longest request costs its length times what the j-th concurrent request adds to a token.

    Args:
        lengths: (..., requests) tokens.
        tau: (batch sizes,) seconds per token; long enough for the number of requests.

    Returns:
        (...) seconds.
    """
    descending = -np.sort(-_lengths(lengths), axis=-1)
    table = _reach(tau, descending)
    return descending @ np.diff(table)


def replica_time_by_intervals(lengths: ArrayLike, tau: ArrayLike) -> Floats:
    """The same time as `replica_time`, sum_j tau(j) (L_j - L_{j+1}): j requests run from L_{j+1} to L_j (paper 2.1)."""
    descending = -np.sort(-_lengths(lengths), axis=-1)
    table = _reach(tau, descending)
    return -np.diff(descending, axis=-1, append=0.0) @ table[1:]


def completion_times(lengths: ArrayLike, tau: ArrayLike) -> Floats:
    """When each request of a replica finishes; 0 for a length of 0.

    The times of the intervals of `replica_time_by_intervals`, summed from the shortest request on.

    Args:
        lengths: (..., requests) tokens.
        tau: (batch sizes,) seconds per token, or with leading axes like those of lengths.

    Returns:
        (..., requests) seconds.
    """
    given = _lengths(lengths)
    order = np.argsort(given, axis=-1)  # requests of one length finish at one time: their order does not matter
    ascending = np.take_along_axis(given, order, axis=-1)
    times = np.cumsum(_interval_times(ascending, tau), axis=-1)
    finished = np.empty_like(times)
    np.put_along_axis(finished, order, times, axis=-1)
    return finished


def tokens_at(lengths: ArrayLike, tau: ArrayLike, at_s: ArrayLike) -> Floats:
    """Tokens that a request of a replica has at a moment, unless it finished before: all requests keep pace.

    Args:
        lengths: (..., requests) tokens.
        tau: (batch sizes,) seconds per token.
        at_s: (...) seconds.

    Returns:
        (...) tokens.
    """
    ascending = np.sort(_lengths(lengths), axis=-1)
    lasts = _interval_times(ascending, tau)
    begins = np.cumsum(lasts, axis=-1) - lasts
    share = np.clip((np.asarray(at_s, float)[..., None] - begins) / np.where(lasts > 0, lasts, 1.0), 0.0, 1.0)
    return (share * np.diff(ascending, axis=-1, prepend=0.0)).sum(axis=-1)


def round_robin(groups: int, responses: int, replicas: int, by_group: bool = False) -> NDArray[np.int64]:
    """Replica of each response of a pool, (groups, responses), as policies.dispatch places them."""
    places = np.arange(groups)[:, None] + np.zeros(responses, int) if by_group else np.arange(groups * responses)
    return places.reshape(groups, responses) % replicas


@dataclass(frozen=True, slots=True)
class StepTime:
    """Times of one step, for each sample, in seconds.

    Attributes:
        tail_s: when the last tail group finished; 0 without one.
        cutoff_s: when as many fresh groups had finished as the step needs; 0 if it needs none.
    """

    tail_s: Floats
    cutoff_s: Floats

    @property
    def step_s(self) -> Floats:
        """The step's makespan: the slower of the two (paper 2.4)."""
        return np.maximum(self.tail_s, self.cutoff_s)


def cutoff_time(group_times: ArrayLike, needed: int) -> Floats:
    """When `needed` groups of a pool have finished: the needed-th smallest of (..., groups) times; 0 for none.

    Raises:
        ValueError: if there are fewer groups.
    """
    times = np.asarray(group_times, float)
    if not 0 <= needed <= times.shape[-1]:
        raise ValueError(f"the cutoff needs {needed} groups of {times.shape[-1]}")
    if needed == 0:
        return np.zeros(times.shape[:-1])
    return np.partition(times, needed - 1, axis=-1)[..., needed - 1]


def response_times(
    lengths: ArrayLike, replica_of: ArrayLike, tail: ArrayLike, needed: int, tau: ArrayLike
) -> tuple[Floats, Floats]:
    """When each response of a step finishes under an assignment, and when the cutoff falls.

    What the cutoff aborts stops running: tail groups that share a replica with aborted ones (m = 0) finish sooner.
    The responses of fresh groups are given the times that they would have without the cutoff.

    Args:
        lengths: (..., groups, responses) tokens.
        replica_of: (groups, responses) index of the replica that runs each response.
        tail: (groups,) whether the group must complete; the others are fresh.
        needed: fresh groups that the step consumes.
        tau: (batch sizes,) seconds per token, or (replicas, batch sizes) when replicas differ (in draft depth).

    Returns:
        (..., groups, responses) seconds, and (...) seconds of the cutoff (0 if no fresh group is needed).
    """
    given, places, is_tail = _lengths(lengths), np.asarray(replica_of), np.asarray(tail, bool)
    finished = _finish(given, places, tau)
    cutoff_s = cutoff_time(finished[..., ~is_tail, :].max(axis=-1), needed)
    must = np.broadcast_to(is_tail[:, None], places.shape)
    for replica in np.intersect1d(places[must], places[~must]):
        rest = (places == replica) & must
        done = tokens_at(given[..., places == replica], _row(tau, replica), cutoff_s)
        left = np.maximum(given[..., rest] - done[..., None], 0.0)
        later = cutoff_s[..., None] + completion_times(left, _row(tau, replica))
        finished[..., rest] = np.where(left > 0, later, finished[..., rest])
    return finished, cutoff_s


def step_time(lengths: ArrayLike, replica_of: ArrayLike, tail: ArrayLike, needed: int, tau: ArrayLike) -> StepTime:
    """Times of a step under an assignment, with the cutoff; arguments as of `response_times`."""
    finished, cutoff_s = response_times(lengths, replica_of, tail, needed, tau)
    tail_times = finished[..., np.asarray(tail, bool), :].max(axis=(-2, -1), initial=0.0)
    return StepTime(tail_s=tail_times, cutoff_s=cutoff_s)


def pool_times(lengths: ArrayLike, replicas: int, tau: ArrayLike, by_group: bool = False) -> Floats:
    """When each group of a pool finishes, its responses dealt out as `round_robin` does and none of them aborted.

    Args:
        lengths: (..., groups, responses) tokens.
        replicas: of the pool.
        tau: (batch sizes,) seconds per token.
        by_group: whole groups are dealt out, else single responses.

    Returns:
        (..., groups) seconds.
    """
    given = _lengths(lengths)
    groups, responses = given.shape[-2:]
    together = responses if by_group else 1
    times = completion_times(_rows(given, replicas, together), tau)
    back = times.reshape(*given.shape[:-2], replicas, -1, together).swapaxes(-3, -2)
    dealt = back.reshape(*given.shape[:-2], -1, together)
    return dealt[..., : groups * responses // together, :].reshape(given.shape).max(axis=-1)


def pool_end(lengths: ArrayLike, replicas: int, tau: ArrayLike, by_group: bool = False) -> Floats:
    """When the last group of a pool finishes, (...) seconds: the maximum of `pool_times`, in half of its time."""
    rows = np.sort(_rows(_lengths(lengths), replicas, np.shape(lengths)[-1] if by_group else 1), axis=-1)
    return np.cumsum(_interval_times(rows, tau), axis=-1)[..., -1].max(axis=-1)


def _rows(given: Floats, replicas: int, together: int) -> Floats:
    """(..., replicas, requests) lengths of each replica of a pool, padded with 0; `together` responses are a unit.

    Dealt out in turn, the k-th unit of a replica is number k * replicas + its own: reshaping does what `_finish` does
    for any assignment, without an index for each response.
    """
    lead, units = given.shape[:-2], given.shape[-2] * given.shape[-1] // together
    rounds = -(-units // replicas)
    dealt = np.zeros((*lead, rounds * replicas, together))
    dealt[..., :units, :] = given.reshape(*lead, units, together)
    rows = dealt.reshape(*lead, rounds, replicas, together).swapaxes(-3, -2)
    return rows.reshape(*lead, replicas, rounds * together)


def _finish(given: Floats, places: NDArray[np.int64], tau: ArrayLike) -> Floats:
    """(..., groups, responses) completion times when nothing is aborted: one padded row a replica."""
    row = places.ravel()
    order = np.argsort(row, kind="stable")
    sizes = np.bincount(row)
    column = np.empty_like(row)
    column[order] = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded = np.zeros((*given.shape[:-2], len(sizes), sizes.max(initial=0)))
    padded[..., row, column] = given.reshape(*given.shape[:-2], -1)
    tables = np.asarray(tau, float)
    times = completion_times(padded, tables if tables.ndim == 1 else tables[: len(sizes)])
    return times[..., row, column].reshape(given.shape)


def _row(tau: ArrayLike, replica: int) -> Floats:
    table = np.asarray(tau, float)
    return table if table.ndim == 1 else table[replica]


def _lengths(lengths: ArrayLike) -> Floats:
    given = np.asarray(lengths, float)
    if given.ndim == 0 or (given < 0).any():
        raise ValueError("lengths must be an array of tokens, 0 or more")
    return given


def _interval_times(ascending: Floats, tau: ArrayLike) -> Floats:
    """Seconds of each interval between neighbouring lengths, in which all requests from here on run."""
    lasts = ascending.copy()
    lasts[..., 1:] -= ascending[..., :-1]
    lasts *= _reach(tau, ascending)[..., :0:-1]
    return lasts


def _reach(tau: ArrayLike, lengths: Floats) -> Floats:
    """tau[0..requests]; padding beyond the table costs nothing, requests beyond it are refused."""
    table = np.asarray(tau, float)
    places = lengths.shape[-1]
    if places < table.shape[-1]:
        return table[..., : places + 1]
    most = int((lengths > 0).sum(axis=-1).max(initial=0))
    if most >= table.shape[-1]:
        raise ValueError(f"a replica runs {most} requests at once, tau is known up to b = {table.shape[-1] - 1}")
    beyond = np.repeat(table[..., -1:], places + 1 - table.shape[-1], axis=-1)
    return np.concatenate([table, beyond], axis=-1)
