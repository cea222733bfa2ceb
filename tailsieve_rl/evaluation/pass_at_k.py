"""pass@k from n >= k responses a problem, and how sure it is."""

from collections.abc import Sequence
from math import comb, sqrt
from statistics import fmean

Z95 = 1.959964
"""Quantile of the normal distribution that leaves 2.5 % above it."""


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased estimate of the probability that one of k responses is right (Chen et al. 2021, equation 1).

    One minus the share of the k-subsets of the n responses that hold none of the right ones.

    Raises:
        ValueError: unless 1 <= k <= n and 0 <= correct <= n.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"pass@{k} of {correct} right responses among {n}: needs 1 <= k <= n and 0 <= right <= n")
    return 1.0 - comb(n - correct, k) / comb(n, k)


def wilson(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of their mean over problems like these (Wilson's score interval).

    It is exact in form for values of 0 and 1, and wide for values between them, whose variance is smaller.
    """
    n, p = len(values), fmean(values)
    centre = (p + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    return max(0.0, round(centre - half, 12)), min(1.0, round(centre + half, 12))


def paired_interval(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean difference from the base, problem by problem (normal approximation)."""
    differences = [value - other for value, other in zip(values, base, strict=True)]
    n, centre = len(differences), fmean(differences)
    variance = sum((d - centre) ** 2 for d in differences) / max(1, n - 1)
    half = Z95 * sqrt(variance / n)
    return centre - half, centre + half
