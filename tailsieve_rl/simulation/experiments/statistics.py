"""Means with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

# Two-sided 95 % quantiles of Student's t for 1 to 19 degrees of freedom; the last is taken for all above.
_T95 = (
    12.71,
    4.30,
    3.18,
    2.78,
    2.57,
    2.45,
    2.36,
    2.31,
    2.26,
    2.23,
    2.20,
    2.18,
    2.16,
    2.14,
    2.13,
    2.12,
    2.11,
    2.10,
    2.09,
)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over independent repeats and its 95 % interval (Student's t)."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> list[float]:
        return [self.low, self.high]


def mean_of(repeats: ArrayLike) -> Mean:
    """Mean of one number a repeat; a single repeat has an interval of no width."""
    values = np.asarray(repeats, float)
    centre = float(values.mean())
    if len(values) < 2:
        return Mean(centre, centre, centre)
    free = len(values) - 1
    reach = (_T95[min(free, len(_T95)) - 1]) * float(values.std(ddof=1)) / sqrt(len(values))
    return Mean(centre, centre - reach, centre + reach)


def speedup(baseline_s: Sequence[float], policy_s: Sequence[float]) -> Mean:
    """Baseline over policy, paired by repeat: the mean of the repeats' ratios of mean step times."""
    return mean_of(np.asarray(baseline_s, float) / np.asarray(policy_s, float))
