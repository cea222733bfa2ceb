"""tau(b, d) for every draft depth from the depths that a run was seen at (paper 4.3).

A forward pass verifies d drafts of each of b requests, after d passes of the drafter, and yields A(d) tokens a request:

    tau(b, d) = p(b, d) / A(d),    p(b, d) = p(b) + d (c + v b)

A(d) is counted. p at the depths that were run is estimated as tau is, from passes instead of tokens; c, what a draft
costs, and v, what verifying one more token a request adds, are fitted to it, and give p at the other depths.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_estimate import Decoding, Estimate, estimate
from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint, isotonic
from tailsieve_rl.routing.draft import Acceptance, acceptance

Floats = NDArray[np.float64]

# What a draft is taken to cost, as a share of a pass at b = 1, until two depths were seen: a drafter is small.
DRAFT_SHARE = 0.1
# Weight of that guess against what was measured.
GUESS_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True)
class DepthEstimate:
    """A fitted tau(b, d).

    Attributes:
        model: with points for every depth asked for.
        acceptance: of the drafts; None if none were seen.
        residual: of the passes that it predicts for a request, root mean square, largest over the depths that ran.
    """

    model: DecodeModel
    acceptance: Acceptance | None
    residual: float


def estimate_depths(steps: Sequence[Sequence[Decoding]], depths: Iterable[int]) -> DepthEstimate:
    """Fit tau at every depth.

    Args:
        steps: the requests of each step; their depths are numbers, not schedules.
        depths: to know tau at. Without drafts seen, only depth 0 is in the model.

    Raises:
        ValueError: if no request with known tokens took any time.
    """
    accepted = acceptance(d.accepted for step in steps for d in step)
    seen: dict[int, Estimate] = {}
    for depth in sorted({d.depth for step in steps for d in step if isinstance(d.depth, int)}):
        of_depth = [[_passes(d, accepted) for d in step if d.depth == depth] for step in steps]
        try:
            seen[depth] = estimate([step for step in of_depth if step], depth)
        except ValueError:  # nothing of it took time
            continue
    if not seen:
        raise ValueError("tau cannot be estimated: no request with known tokens took any time")
    knots = np.unique([point.b for found in seen.values() for point in found.model.points])
    pass_s = _pass_times(knots, seen)
    wanted = {0, *depths, *seen} if accepted else {0}
    points = [
        DecodePoint(int(b), float(seconds) / (accepted.tokens(depth) if accepted else 1.0), depth)
        for depth in sorted(wanted)
        for b, seconds in zip(knots, pass_s.at(depth), strict=True)
    ]
    return DepthEstimate(DecodeModel(tuple(points)), accepted, max(found.residual for found in seen.values()))


def _passes(request: Decoding, accepted: Acceptance | None) -> Decoding:
    """The request with passes in the place of tokens; where they were not counted, as many as are expected."""
    if request.tokens is None or not request.depth:
        return request
    assert isinstance(request.depth, int)
    if request.accepted:
        passes = request.tokens - sum(i * count for i, count in enumerate(request.accepted))
    else:
        passes = request.tokens / (accepted.tokens(request.depth) if accepted else 1.0)
    return replace(request, tokens=max(passes, 0.0))


@dataclass(frozen=True, slots=True)
class _PassTimes:
    """p(b, d) at the knots: the fit, and what was measured where it was."""

    knots: Floats
    plain: Floats
    per_draft: Floats
    measured: Mapping[int, Estimate]

    def at(self, depth: int) -> Floats:
        """(knots,) seconds a pass; beyond the measured ones the fit goes on from the last of them."""
        fitted = self.plain + depth * self.per_draft
        if depth not in self.measured:
            return fitted
        points = self.measured[depth].model.points
        b, seconds = np.array([(p.b, p.tau_s) for p in points], float).T
        inside = np.interp(self.knots, b, seconds)
        edge = seconds[-1] / np.interp(b[-1], self.knots, fitted)
        return np.where(self.knots <= b[-1], inside, fitted * edge)


def _pass_times(knots: Floats, seen: Mapping[int, Estimate]) -> _PassTimes:
    """Weighted least squares for p(b) at the knots, c and v, relative to the times; c and v are not negative."""
    rows, right, weights = [], [], []
    for depth, found in seen.items():
        total = sum(found.evidence) or 1.0
        for point, evidence in zip(found.model.points, found.evidence, strict=True):
            row = np.zeros(len(knots) + 2)
            row[np.searchsorted(knots, point.b)] = 1.0
            row[-2:] = depth, depth * point.b
            rows.append(row / point.tau_s)
            right.append(1.0)
            weights.append(max(evidence / total, 1e-6))
    first = min(point.tau_s for found in seen.values() for point in found.model.points)
    for column, guess, unit in ((-2, DRAFT_SHARE * first, first), (-1, 0.0, first / knots[-1])):
        row = np.zeros(len(knots) + 2)
        row[column] = 1.0 / unit
        rows.append(row)
        right.append(guess / unit)
        weights.append(GUESS_WEIGHT)
    table, target, root = np.array(rows), np.array(right), np.sqrt(weights)
    free = np.ones(len(knots) + 2, bool)
    while True:
        solution = np.zeros(len(free))
        solution[free] = np.linalg.lstsq(table[:, free] * root[:, None], target * root, rcond=None)[0]
        negative = free & (np.arange(len(free)) >= len(knots)) & (solution < 0)
        if not negative.any():
            break
        free &= ~negative
    plain = isotonic(np.maximum(solution[:-2], 1e-2 * first), np.ones(len(knots)))
    return _PassTimes(knots, plain, solution[-2] + solution[-1] * knots, seen)
