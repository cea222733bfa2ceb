"""How many tokens an engine drafts at once, by pool (paper 3.4), and how many of them it accepts."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Depth: TypeAlias = int | tuple[int, ...]
"""Draft tokens of an engine: a number, or a schedule with one for each number of running requests, index b."""


def depth_at(depth: Depth, b: int) -> int:
    """Draft tokens at b running requests; a schedule goes on with its last entry."""
    return depth if isinstance(depth, int) else depth[min(b, len(depth) - 1)]


@dataclass(frozen=True, slots=True)
class DraftDepths:
    """What the engines of each pool draft.

    Attributes:
        tail: in the tail pool.
        bulk: in the bulk pool.
        uniform: on all replicas when there is no tail pool (paper D.1: speculation stays on at the uniform boundary).
    """

    tail: Depth = 0
    bulk: Depth = 0
    uniform: Depth = 0


NO_DRAFTS = DraftDepths()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """How many drafts verifications accept.

    Attributes:
        at_least: (depths seen,) chance that i drafts or more are accepted where as many were drafted, i = 1, 2, ...
        verifications: that were seen.
    """

    at_least: tuple[float, ...]
    verifications: int = 0

    def tokens(self, depth: int) -> float:
        """Tokens that a verification of so many drafts yields: the accepted ones and one of the model's own.

        Beyond the depths seen, each further draft is accepted as often as the last one was, given those before it.
        """
        known = self.at_least[:depth]
        if depth <= len(self.at_least) or not known:
            return 1.0 + sum(known)
        before = self.at_least[-2] if len(self.at_least) > 1 else 1.0
        ratio = self.at_least[-1] / before if before else 0.0
        return 1.0 + sum(known) + sum(known[-1] * ratio**i for i in range(1, depth - len(known) + 1))


def verified(tokens: int, depth: Depth, accepted: Acceptance, b: int = 1) -> tuple[int, tuple[int, ...]]:
    """Drafts, and verifications by accepted drafts, that so many tokens of a response take on average.

    Args:
        tokens: of the response.
        depth: that it ran at; of a schedule, the one for b requests.
        accepted: how many drafts verifications accept.
        b: requests that ran with it.
    """
    drafts = depth_at(depth, b)
    if not drafts:
        return 0, ()
    passes = round(tokens / accepted.tokens(drafts))
    at_least = [round(passes * (accepted.tokens(i) - accepted.tokens(i - 1))) for i in range(1, drafts + 1)]
    counts = [more - less for more, less in zip([passes, *at_least], [*at_least, 0], strict=True)]
    return passes * drafts, tuple(counts)


def geometric(acceptance: float, depth: int) -> Acceptance:
    """Each draft is accepted with the same chance, given that those before it were."""
    return Acceptance(tuple(prod([acceptance] * i) for i in range(1, depth + 1)))


def sized(histogram: tuple[int, ...], depth: Depth) -> tuple[int, ...]:
    """A count of verifications by accepted drafts, from 0 to the depth: engines count up to their largest one."""
    if not isinstance(depth, int) or not histogram:
        return histogram
    return (histogram + (0,) * depth)[: depth + 1]


def acceptance(histograms: Iterable[tuple[int, ...]]) -> Acceptance | None:
    """From counts of verifications by accepted drafts; None without one that had drafts.

    Args:
        histograms: (depth + 1,) each: how many verifications accepted 0, 1, ..., depth drafts.
    """
    seen = [histogram for histogram in histograms if len(histogram) > 1 and any(histogram)]
    if not seen:
        return None
    shares, least = [], 1.0
    for i in range(1, max(map(len, seen))):
        deep = [histogram for histogram in seen if len(histogram) > i]
        least = min(least, sum(sum(h[i:]) for h in deep) / sum(sum(h) for h in deep))
        shares.append(least)
    return Acceptance(tuple(shares), sum(map(sum, seen)))
