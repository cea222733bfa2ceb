"""The weak, the real and the strong tail of the paper's A.5."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.simulation.workloads.drift import Drift, Drifting, constant
from tailsieve_rl.simulation.workloads.length_curve import LengthCurve
from tailsieve_rl.simulation.workloads.presets import MATH_QUANTILES, MATH_WEIGHTS
from tailsieve_rl.simulation.workloads.synthetic import Synthetic, Weights

Ints = NDArray[np.int64]

MEDIAN, P90, LONGEST = 1160, 4115, 11_800
"""Tokens of the real trace, Table A.3."""

RATIOS = {"weak": 1.5, "real": P90 / MEDIAN, "strong": 6.0}
"""P90 over median of each workload, Table A.3."""

CAP = 24_000
"""Tokens; above the strong tail's longest response, as A.5 stretches without a cap."""


def stretch(ratio: float, median: float = MEDIAN, p90: float = P90) -> float:
    """s_r = (r M - M) / (P90 - M): what lengths above the median are stretched by (A.5)."""
    if ratio <= 1:
        raise ValueError(f"ratio = {ratio} of P90 to the median must be above 1")
    return (ratio * median - median) / (p90 - median)


def transform(lengths: ArrayLike, ratio: float) -> Ints:
    """The lengths of a trace with P90 at `ratio` times the median (A.5): those up to the median stay as they are.

    Median and P90 are NumPy's, with linear interpolation. The result is rounded to whole tokens, half to even. From
    Table A.3's own median, P90 and maximum the formula gives maxima of 3,248 (weak) and 22,044 (strong), where the
    table prints 3,206 and 22,094: no rounding of the three explains that.

    Args:
        lengths: tokens, of any shape.
        ratio: above 1.

    Returns:
        tokens, in the shape and the order of length of the given ones.
    """
    given = np.asarray(lengths, float)
    median, p90 = np.percentile(given, [50, 90])
    stretched = median + stretch(ratio, float(median), float(p90)) * (given - median)
    return np.rint(np.where(given > median, stretched, given)).astype(np.int64)


def real_trace(seed: int, groups: int = 64, responses: int = 8) -> Ints:
    """A stand-in for the real trace, whose median, P90 and longest response are exactly those of Table A.3.

    Lengths are the curve's at evenly spaced probabilities, in an order drawn as the math workload draws its own; those
    that the three statistics are read from are then set.

    Args:
        seed: of the order.
        groups: prompts; with the responses at least 20 lengths.
        responses: of a prompt.

    Returns:
        (groups, responses) tokens.
    """
    count = groups * responses
    if count < 20:
        raise ValueError(f"{groups} x {responses} lengths are too few for a P90 apart from median and maximum")
    sampled = _math(seed, responses).lengths(np.arange(groups), np.ones(groups, int), 0).ravel()
    lengths = _REAL.at((np.arange(count) + 0.5) / count)
    for percent, tokens in ((50, MEDIAN), (90, P90), (100, LONGEST)):
        place = percent / 100 * (count - 1)
        low, high = int(np.floor(place)), int(np.ceil(place))
        lengths[:low] = np.minimum(lengths[:low], tokens)
        lengths[high:] = np.maximum(lengths[high:], tokens)
        lengths[[low, high]] = tokens
    trace = np.empty(count, np.int64)
    trace[np.argsort(sampled, kind="stable")] = lengths
    return trace.reshape(groups, responses)


def tail_strength(name: str, seed: int, responses: int = 8) -> Drifting:
    """An endless workload with the weak, real or strong tail, for steps that regenerate their tail.

    Prompt and sampling weigh as in the math workload; nothing drifts, and nothing is truncated.

    Args:
        name: of RATIOS.
        seed: of the prompt stream: the three workloads of a seed differ in their upper halves only.
        responses: n.

    Raises:
        ValueError: for another name.
    """
    if name not in RATIOS:
        raise ValueError(f"there is no tail {name!r}, only {', '.join(RATIOS)}")
    return Drifting(_math(seed, responses), constant(Drift(stretch=stretch(RATIOS[name]))), MEDIAN, name)


_REAL = LengthCurve(MATH_QUANTILES, CAP, longest=LONGEST)


def _math(seed: int, responses: int) -> Synthetic:
    return Synthetic("tail", seed, _REAL, Weights(MATH_WEIGHTS.sampling), responses)
