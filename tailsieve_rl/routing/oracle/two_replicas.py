"""The exact optimum of two replicas: a dynamic program with Pareto pruning (paper 2.1).

Requests are placed longest first. What a request adds to its replica depends only on how many longer ones the replica
holds, so a state is that count and the two times so far; of the states of one count only those stay that no other one
beats in both times. States whose lower bound (relaxation) does not beat the best split known are dropped.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.routing.makespan import Floats, replica_time
from tailsieve_rl.routing.oracle.relaxation import Relaxation, relax
from tailsieve_rl.routing.oracle.top_k import best_top_k

Ints = NDArray[np.int32]

# A search that keeps only the most promising states of each request finds a good split, and with it a search without
# this limit is small. The limit grows until it is never met, which is when the search was exact.
FIRST_WIDTH, WIDER = 1000, 8
# Splits that differ by less than rounding are the same.
SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Split:
    """The fastest way to run some requests on two replicas.

    Attributes:
        time_s: seconds until both replicas have finished.
        tail: indices of the requests on the replica that has fewer, longest first.
        bulk: indices of the others, longest first.
        states: states that the exact search retained.
    """

    time_s: float
    tail: tuple[int, ...]
    bulk: tuple[int, ...]
    states: int


def optimal_split(lengths: ArrayLike, tau: ArrayLike) -> Split:
    """The split of requests over two replicas whose slower replica is fastest (paper 2.1).

    Exact up to rounding (a relative 1e-9 of the time) for every positive tau, plateaus and decreases included.
    100 long-tailed requests take about 0.05 s and some 10^2 to 10^5 states under most tau. Where tau is nearly
    straight, very many splits are nearly as fast as the best one: seconds, and 10^7 states.

    Args:
        lengths: (requests,) whole tokens, 0 or more, in any order.
        tau: (batch sizes,) seconds per token with tau[0] = 0, known up to b = requests.

    Raises:
        ValueError: if lengths or tau are not as above.
    """
    given, table = _checked(lengths, tau)
    order = np.argsort(-given, kind="stable")
    fewest = best_top_k(given, table)
    on_a, time_s, states = np.arange(len(given)) < fewest.k, fewest.time_s, 0
    if len(given) > 1:
        problem = _Problem(given[order], _exact_rises(table, given.max()))
        bounds, width, exact = relax(problem.lengths, problem.rises), FIRST_WIDTH, False
        while not exact:
            found = _search(problem, bounds, time_s * (1 - SAME), width)
            exact, states, width = found.exact, found.states, width * WIDER
            if found.on_a is not None:
                on_a, time_s = found.on_a, found.time_s
    first, second = sorted((order[on_a], order[~on_a]), key=len)
    time_s = max(float(replica_time(given[side], table)) for side in (first, second))
    return Split(time_s, tuple(first.tolist()), tuple(second.tolist()), states)


def _checked(lengths: ArrayLike, tau: ArrayLike) -> tuple[Floats, Floats]:
    given, table = np.asarray(lengths, float), np.asarray(tau, float)
    if given.ndim != 1 or (given < 0).any() or (given != np.rint(given)).any():
        raise ValueError("lengths must be a list of whole tokens, 0 or more")
    if table.ndim != 1 or len(table) <= len(given):
        raise ValueError(
            f"tau must be known up to b = {len(given)}, the number of requests, not of shape {table.shape}"
        )
    if table[0] != 0 or not (np.isfinite(table) & (table > 0))[1 : len(given) + 1].all():
        raise ValueError("tau must be 0 at b = 0 and a positive number of seconds beyond")
    return given, table[: len(given) + 1]


def _exact_rises(table: Floats, longest: float) -> Floats:
    """tau(b) - tau(b - 1) on a grid so coarse that no sum of whole tokens times a rise is ever rounded.

    Otherwise sums that are equal, of which a straight tau has millions, would differ in their last bit and all be kept.
    """
    bits = np.finfo(float).nmant - np.ceil(np.log2(max(longest, 1.0) * table.max()))
    return np.ldexp(np.rint(np.ldexp(np.diff(table), int(bits))), -int(bits))


@dataclass(frozen=True, slots=True)
class _Problem:
    """Requests to be placed.

    Attributes:
        lengths: (requests,) tokens, longest first.
        rises: (requests,) seconds per token that a request adds, by the number of longer ones on its replica.
    """

    lengths: Floats
    rises: Floats

    def __len__(self) -> int:
        return len(self.lengths)

    def cost(self, request: int, longer: int) -> float:
        """Seconds that a request adds to a replica with so many longer ones (paper 2.1)."""
        return float(self.lengths[request] * self.rises[longer])

    def future(self, placed: int, on_a: int) -> bytes:
        """All rises that further requests can meet on A and on B: equal bytes, equal costs from here on."""
        left, on_b = len(self) - placed, placed - on_a
        return self.rises[on_a : on_a + left].tobytes() + self.rises[on_b : on_b + left].tobytes()


@dataclass(frozen=True, slots=True)
class _Front:
    """States with the same requests placed and the same count on A, none of which beats another.

    Attributes:
        a, b: (states,) seconds of A, ascending, and of B, descending.
        bound: (states,) seconds that every completion takes at least.
        came: (states,) 2 i + 1 if the last request joined A in state i of the front before, 2 i if it joined B.
    """

    a: Floats
    b: Floats
    bound: Floats
    came: Ints

    def __len__(self) -> int:
        return len(self.a)

    def only(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> "_Front":
        return _Front(self.a[keep], self.b[keep], self.bound[keep], self.came[keep])


_Fronts = dict[int, _Front]  # by how many requests are on A


@dataclass(frozen=True, slots=True)
class _Found:
    """A finished search: which requests are on A in the best split below the limit, if there is one."""

    exact: bool
    states: int
    time_s: float
    on_a: NDArray[np.bool_] | None


def _search(problem: _Problem, bounds: Relaxation, limit_s: float, width: int) -> _Found:
    """Place all requests, the longest on A (the replicas are alike); at most `width` states a request."""
    zero = np.zeros(1)
    fronts = {1: _Front(zero + problem.cost(0, 0), zero, zero, np.zeros(1, np.int32))}
    came: list[dict[int, Ints]] = [{}]
    exact, states = True, 0
    for placed in range(1, len(problem)):
        counts = sorted(fronts.keys() | {count + 1 for count in fronts})
        fronts = {on_a: _reach(fronts, problem, bounds, placed, on_a, limit_s) for on_a in counts}
        fronts = _filled(_across_counts(fronts, problem, placed + 1))
        if sum(map(len, fronts.values())) > width:
            exact, fronts = False, _most_promising(fronts, width)
        states += sum(map(len, fronts.values()))
        came.append({on_a: front.came for on_a, front in fronts.items()})
    if not fronts:
        return _Found(exact, states, limit_s, None)
    ends = {on_a: np.maximum(front.a, front.b) for on_a, front in fronts.items()}
    best = min(ends, key=lambda on_a: float(ends[on_a].min()))
    return _Found(exact, states, float(ends[best].min()), _trace(came, best, int(ends[best].argmin())))


def _reach(fronts: _Fronts, problem: _Problem, bounds: Relaxation, placed: int, on_a: int, limit_s: float) -> _Front:
    """The states with `on_a` requests on A after one more was placed."""
    nothing = _Front(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int32))
    to_a, to_b = fronts.get(on_a - 1, nothing), fronts.get(on_a, nothing)
    a = np.concatenate([to_a.a + problem.cost(placed, on_a - 1), to_b.a])
    b = np.concatenate([to_a.b, to_b.b + problem.cost(placed, placed - on_a)])
    came = 2 * np.concatenate([np.arange(len(to_a)), np.arange(len(to_b))]).astype(np.int32)
    came[: len(to_a)] += 1
    bound = bounds.bound(placed + 1, on_a, a, b)
    states = _Front(a, b, bound, came).only(bound < limit_s)
    return states.only(_undominated(states.a, states.b))


def _undominated(a: Floats, b: Floats) -> NDArray[np.intp]:
    """Indices of the Pareto front, ascending in a: b falls along it, and of equal a the last one has the least b."""
    order = np.argsort(a, kind="stable")
    keep = np.ones(len(a), bool)
    keep[1:] = b[order][1:] < np.minimum.accumulate(b[order])[:-1]
    order = order[keep]
    keep = np.ones(len(order), bool)
    keep[:-1] = a[order][1:] > a[order][:-1]
    return order[keep]


def _across_counts(fronts: _Fronts, problem: _Problem, placed: int) -> _Fronts:
    """Drop what a state of another count beats, where both counts make all further requests cost the same.

    A straight tau has many such counts, and they reach the same sums of tokens again and again.
    """
    alike: dict[bytes, list[int]] = {}
    for on_a in fronts:
        alike.setdefault(problem.future(placed, on_a), []).append(on_a)
    kept = dict(fronts)
    for counts in (counts for counts in alike.values() if len(counts) > 1):
        several = [fronts[on_a] for on_a in counts]
        owner = np.repeat(counts, [len(front) for front in several])
        state = np.concatenate([np.arange(len(front)) for front in several])
        best = _undominated(np.concatenate([f.a for f in several]), np.concatenate([f.b for f in several]))
        kept |= {on_a: fronts[on_a].only(state[best[owner[best] == on_a]]) for on_a in counts}
    return kept


def _filled(fronts: _Fronts) -> _Fronts:
    return {on_a: front for on_a, front in fronts.items() if len(front)}


def _most_promising(fronts: _Fronts, width: int) -> _Fronts:
    limit_s = np.partition(np.concatenate([front.bound for front in fronts.values()]), width - 1)[width - 1]
    return _filled({on_a: front.only(front.bound <= limit_s) for on_a, front in fronts.items()})


def _trace(came: list[dict[int, Ints]], on_a: int, state: int) -> NDArray[np.bool_]:
    """Which requests are on A, from the last one placed back to the first."""
    chosen = np.ones(len(came), bool)
    for placed in range(len(came) - 1, 0, -1):
        state, chosen[placed] = divmod(int(came[placed][on_a][state]), 2)
        on_a -= int(chosen[placed])
    return chosen
