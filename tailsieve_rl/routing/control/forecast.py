"""How long a step would take at any (q, m), from the groups of past steps (paper C.2, "predicted group-work
distribution and measured concurrency-throughput curve").

A step is played over: a fresh pool of N groups is drawn from the past ones; the groups that finish last on the bulk
pool are the tail set; they are generated again on the tail pool. Whatever is drawn is drawn once and used at every
(q, m), so that allocations differ by what they do and not by luck.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control.evidence import Ints
from tailsieve_rl.routing.makespan import pool_end, pool_times

Floats = NDArray[np.float64]

MOST_QUANTILES = 2048
"""Points that the distribution of past lengths is kept in: four for each of the 512 responses of a usual step."""

SHARE_OF_SINGLES = 0.65
"""Share of the variance of lengths between prompts that is assumed where groups of one response cannot show it: the
paper's measurement (Appendix B, 64.8 %). At 0 no isolation could pay, and the draws would say so whatever is true."""


@dataclass(frozen=True, slots=True)
class Draws:
    """(samples, N, n) lengths in tokens.

    Attributes:
        first: generations of a fresh pool.
        again: second generations of the same prompts, under the same policy.
    """

    first: Ints
    again: Ints


def draw(lengths: Ints, groups: int, samples: int, rng: np.random.Generator) -> Draws:
    """Draw fresh pools like the past groups, and two generations of each prompt.

    Every response has a score, the normal quantile of its rank among all past responses. A drawn prompt has the mean
    score of a past group, shrunk and spread by what n responses leave unknown of it; a generation adds the variance
    within a prompt; scores become lengths by the past responses' own distribution. Resampling each group's few
    responses instead repeats them in both generations: the tail looks easier to catch than it is.

    Args:
        lengths: (past groups, n) tokens.
        groups: N.
        samples: pools to draw.
        rng: a seeded generator.
    """
    past, n = lengths.shape
    grid = _normal_scores(min(lengths.size, MOST_QUANTILES))
    quantiles = _quantiles(lengths, (np.arange(len(grid)) + 0.5) / len(grid))
    scores = _scores(lengths, quantiles, grid)
    # Among lengths the few long responses count, among scores all do: where only the tail depends on the prompt, the
    # first share shows it, and the tail is what a forecast is for.
    share = SHARE_OF_SINGLES if n == 1 else max(_prompt_share(lengths), _prompt_share(scores))
    known = share / (share + (1 - share) / n)
    means, spread = scores.mean(axis=1), float(scores.std())
    # Without replacement where there are enough: a pool does not hold a prompt twice.
    if past >= 2 * groups:
        chosen = np.stack([rng.permutation(past)[:groups] for _ in range(samples)])
    else:
        chosen = rng.integers(0, past, (samples, groups))
    guess = known * (means[chosen] - means.mean()) / (spread or 1.0)
    prompt = guess + (share * (1 - known)) ** 0.5 * rng.standard_normal(chosen.shape)

    noise = (1 - share) ** 0.5 * rng.standard_normal((2, *chosen.shape, n))
    first, again = _interpolated(prompt[..., None] + noise, grid, quantiles).astype(np.int64)
    return Draws(first, again)


def _interpolated(at: Floats, grid: Floats, values: Floats) -> Floats:
    """What np.interp gives; thousands of places are found three times as fast in ascending order."""
    order = np.argsort(at, axis=None)
    found = np.empty(at.size)
    found[order] = np.interp(at.ravel()[order], grid, values)
    return found.reshape(at.shape)


def _quantiles(lengths: Ints, probabilities: Floats) -> Floats:
    """What np.quantile gives; for thousands of probabilities a sort is ten times as fast as its partition."""
    ascending = np.sort(lengths, axis=None)
    places = (ascending.size - 1) * probabilities
    below = places.astype(np.int64)
    low, high = ascending[below].astype(float), ascending[np.minimum(below + 1, ascending.size - 1)]
    return np.asarray(low + (places - below) * (high - low), float)


def _prompt_share(values: NDArray[Any]) -> float:
    """Share of the variance of (groups, n) values that is between groups: one-way analysis of variance."""
    groups, n = values.shape
    if groups < 2 or n < 2:
        return 0.0
    within = float(values.var(axis=1, ddof=1).mean())
    between = max(float(values.mean(axis=1).var(ddof=1)) - within / n, 0.0)
    return between / (between + within) if between else 0.0


def _scores(lengths: Ints, quantiles: Floats, grid: Floats) -> Floats:
    """The normal score of each length; equal lengths, such as those at the cap, share the mean of theirs."""
    order = np.argsort(lengths, axis=None)  # in ascending order they are found faster
    ascending = lengths.ravel()[order]
    first, last = np.searchsorted(quantiles, ascending, "left"), np.searchsorted(quantiles, ascending, "right")
    sums = np.concatenate([[0.0], np.cumsum(grid)])
    tied = (sums[last] - sums[first]) / np.maximum(last - first, 1)
    scores = np.empty(lengths.size)
    scores[order] = np.where(last > first, tied, grid[np.minimum(first, len(grid) - 1)])
    return scores.reshape(lengths.shape)


@lru_cache(maxsize=16)
def _normal_scores(count: int) -> Floats:
    """Normal quantiles of `count` equally probable ranks."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((i + 0.5) / count) for i in range(count)])


@dataclass(frozen=True, slots=True)
class PoolTaus:
    """Seconds per token by batch size: in the tail pool, in the bulk pool, and on all replicas of uniform routing."""

    tail: Floats
    bulk: Floats
    uniform: Floats


def same_tau(tau: Floats) -> PoolTaus:
    """Of pools that do not differ (in draft depth)."""
    return PoolTaus(tau, tau, tau)


@dataclass(slots=True)
class Forecast:
    """Predicted times of a step, mean over the draws, in seconds. What was computed once is kept.

    Attributes:
        draws: pools to play over.
        replicas: R.
        tau: how fast the pools decode.
        by_group: whole groups are dealt out, else single responses.
    """

    draws: Draws
    replicas: int
    tau: PoolTaus
    by_group: bool = False
    _bulk: dict[int, tuple[Floats, Ints]] = field(default_factory=dict)
    _tail: dict[tuple[int, int], Floats] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        """N."""
        return self.draws.first.shape[1]

    def step_s(self, allocation: Allocation) -> float:
        """The step's makespan, max(T_tail, T_bulk)."""
        return float(self.makespans(allocation).mean())

    def makespans(self, allocation: Allocation) -> Floats:
        """(samples,) the makespan in each drawn pool."""
        if allocation.q == 0 or allocation.m == 0:
            return self._bulk_times(0)[0][:, -1]
        return np.maximum(self.tail_s(allocation), self.bulk_s(allocation))

    def bulk_s(self, allocation: Allocation) -> Floats:
        """(samples,) when N - q of N fresh groups have finished on R - m replicas."""
        return self._bulk_times(allocation.m)[0][:, self.groups - allocation.q - 1]

    def tail_s(self, allocation: Allocation) -> Floats:
        """(samples,) when the q groups that had finished last are through on m replicas."""
        key = (allocation.q, allocation.m)
        if key not in self._tail:
            last = self._bulk_times(allocation.m)[1][:, self.groups - allocation.q :]
            lengths = self.draws.again[np.arange(len(last))[:, None], last]
            self._tail[key] = pool_end(lengths, allocation.m, self.tau.tail, self.by_group)
        return self._tail[key]

    def bulk_done(self, m: int, deadline_s: float) -> float:
        """Mean number of fresh groups that R - m replicas finish by a deadline."""
        return float((self._bulk_times(m)[0] <= deadline_s).sum(axis=-1).mean())

    def tail_done(self, m: int, deadline_s: float, most: int) -> int:
        """Largest number of tail groups, up to `most`, that m replicas finish by a deadline (bisection)."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.tail_s(Allocation(middle, m)).mean() <= deadline_s:
                low = middle
            else:
                high = middle - 1
        return low

    def _bulk_times(self, m: int) -> tuple[Floats, Ints]:
        """(samples, N) completion times of the fresh pool's groups on R - m replicas, sorted, and their order."""
        if m not in self._bulk:
            tau = self.tau.bulk if m else self.tau.uniform
            times = pool_times(self.draws.first, self.replicas - m, tau, self.by_group)
            order = np.argsort(times, axis=-1, kind="stable")
            self._bulk[m] = np.take_along_axis(times, order, axis=-1), order
        return self._bulk[m]
