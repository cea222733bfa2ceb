"""From a standard normal score to a length: a distribution is given by a few of its quantiles."""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_normal = NormalDist()


@dataclass(frozen=True)
class LengthCurve:
    """Lengths whose logarithm is piecewise linear in a standard normal score, and a share that never stops by itself.

    Below the first and above the last quantile the curve goes on with the slope of its neighbours, so two quantiles
    make a lognormal. Responses that run to the cap are a mode of their own, not the end of a tail: a model that
    repeats itself does so until it is cut. They take the highest scores.

    Attributes:
        quantiles: (probability, tokens) of the responses that stop by themselves; at least two, both ascending.
        cap: tokens at which a response is cut.
        truncated: share of responses that run to the cap.
        longest: tokens of the longest response that stops by itself; None leaves that to the cap.
    """

    quantiles: tuple[tuple[float, float], ...]
    cap: int
    truncated: float = 0.0
    longest: float | None = None

    def __post_init__(self) -> None:
        probabilities, tokens = zip(*self.quantiles, strict=True)
        ascending = all(np.diff(probabilities) > 0) and all(np.diff(tokens) > 0)
        if len(self.quantiles) < 2 or not ascending or not 0 < probabilities[0] < probabilities[-1] < 1:
            raise ValueError(f"quantiles = {self.quantiles} must ascend, with probabilities between 0 and 1")
        if not 1 <= tokens[0] <= tokens[-1] <= self.cap:
            raise ValueError(f"quantiles = {self.quantiles} must lie between 1 and the cap of {self.cap} tokens")
        if not 0 <= self.truncated < 1:
            raise ValueError(f"truncated = {self.truncated} must be a share of 0 or more and less than 1")
        if self.longest is not None and not tokens[-1] <= self.longest <= self.cap:
            raise ValueError(f"longest = {self.longest} must lie between the last quantile and the cap of {self.cap}")

    def tokens(self, scores: ArrayLike) -> Ints:
        """Length at each score, whole tokens from 1 to the cap."""
        given = np.asarray(scores, float)
        knots, logs = self._knots
        inside = np.interp(given, knots, logs)
        below = np.minimum(given - knots[0], 0.0) * (logs[1] - logs[0]) / (knots[1] - knots[0])
        above = np.maximum(given - knots[-1], 0.0) * (logs[-1] - logs[-2]) / (knots[-1] - knots[-2])
        most = self.cap if self.longest is None else self.longest
        lengths = np.rint(np.exp(np.minimum(inside + below + above, np.log(most))))
        cut = given >= self._cut if self.truncated else False
        return np.where(cut, self.cap, np.clip(lengths, 1, self.cap)).astype(np.int64)

    def at(self, probabilities: ArrayLike) -> Ints:
        """Length at each probability strictly between 0 and 1: the quantile function, with the truncated ones."""
        return self.tokens([_normal.inv_cdf(float(probability)) for probability in np.ravel(probabilities)])

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        kept = 1.0 - self.truncated
        scores = [_normal.inv_cdf(kept * probability) for probability, _ in self.quantiles]
        return np.array(scores), np.log([tokens for _, tokens in self.quantiles])

    @cached_property
    def _cut(self) -> float:
        return _normal.inv_cdf(1.0 - self.truncated)
