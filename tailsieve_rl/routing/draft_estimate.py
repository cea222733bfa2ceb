"""tau(b, d) for every draft depth from the depths that a run was seen at (paper 4.3).

A forward pass verifies d drafts of each of b requests after they were drafted, and yields A(d) tokens a request:

    tau(b, d) = p(b, d) / A(d),    p(b, d) = (1 - s) p(b) + s p(b (d + 1)) + c_0 + c d   (d > 0)

A(d) is counted, p at the depths that ran is estimated as tau is, from passes instead of tokens. Fitted for the other
depths are p(b), passes without drafts; s, how far a further token of a request costs what a further request does (in
mixtures of experts it does, where keys and values are read it does not); and drafting, once a pass and for each draft.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_estimate import Decoding, Estimate, estimate
from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint, isotonic
from tailsieve_rl.routing.draft import Acceptance, acceptance

Floats = NDArray[np.float64]

SHARES = np.linspace(0.0, 1.0, 11)
"""Values of s that are tried."""
DRAFT_SHARE = 0.1
"""What a draft is taken to cost until one was seen, as a share of a pass at b = 1: drafters are small."""
GUESS_WEIGHT = 1e-4
"""Of the guesses c_0 = 0 and c = that share, against what was measured. Until two depths have run they say that nothing
is paid once a pass: the depths in between look good, so that one of them is run, and that settles it."""
STRAIGHT_WEIGHT = 0.03
"""Of the guess that p(b) has no bends, against what was measured: where no depth shows p(b), it goes on straight."""


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
    """Fit tau at every depth; as many drafts are accepted as in the last step that had any.

    Args:
        steps: the requests of each step, oldest first; their depths are numbers, not schedules.
        depths: to know tau at. Without drafts seen, only depth 0 is in the model.

    Raises:
        ValueError: if no request with known tokens took any time.
    """
    accepted, passes = latest_acceptance(steps), estimate_passes(steps)
    residual = max(found.residual for found in passes.measured.values())
    return DepthEstimate(passes.model(depths, accepted), accepted, residual)


def estimate_passes(steps: Sequence[Sequence[Decoding]]) -> "PassTimes":
    """Fit p at every depth; arguments as of `estimate_depths`.

    Raises:
        ValueError: if no request with known tokens took any time.
    """
    accepted = latest_acceptance(steps)
    seen: dict[int, Estimate] = {}
    for depth in sorted({d.depth for step in steps for d in step if isinstance(d.depth, int)}):
        of_depth = [[_passes(d, accepted) for d in step if d.depth == depth] for step in steps]
        try:
            seen[depth] = estimate([step for step in of_depth if step], depth)
        except ValueError:  # nothing of it took time
            continue
    if not seen:
        raise ValueError("tau cannot be estimated: no request with known tokens took any time")
    return _fit(seen)


def latest_acceptance(steps: Sequence[Sequence[Decoding]]) -> Acceptance | None:
    """Of the last step that had drafts: a policy in training changes, and a step verifies thousands of them."""
    found = (acceptance(request.accepted for request in step) for step in reversed(steps))
    return next((accepted for accepted in found if accepted), None)


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
class PassTimes:
    """p(b, d): the fit, and what was measured.

    Attributes:
        knots: batch sizes.
        plain: p(b) at the knots, seconds.
        share: s.
        once, each: c_0 and c, seconds.
        measured: p(b, d) of the depths that ran.
    """

    knots: Floats
    plain: Floats
    share: float
    once: float
    each: float
    measured: Mapping[int, Estimate]

    def model(self, depths: Iterable[int], accepted: Acceptance | None) -> DecodeModel:
        """tau at depth 0, at the measured depths and at those asked for; without accepted drafts, only at depth 0."""
        wanted = {0, *depths, *self.measured} if accepted else {0}
        points = [
            DecodePoint(int(b), float(seconds) / (accepted.tokens(depth) if accepted else 1.0), depth)
            for depth in sorted(wanted)
            for b, seconds in zip(self.knots, self.at(depth), strict=True)
        ]
        return DecodeModel(tuple(points))

    def at(self, depth: int) -> Floats:
        """(knots,) seconds a pass; outside of the measured ones the fit, as far off as it is among them."""
        fitted = _mixing(self.knots, self.knots, depth, self.share) @ self.plain + depth * self.each
        fitted = fitted + (self.once if depth else 0.0)
        if depth not in self.measured:
            return fitted
        b, seconds, evidence = _curve(self.measured[depth])
        off = np.average(np.log(seconds / np.interp(b, self.knots, fitted)), weights=evidence)
        known = (self.knots >= b[0]) & (self.knots <= b[-1])
        return np.where(known, np.interp(self.knots, b, seconds), fitted * np.exp(off))


def _fit(seen: Mapping[int, Estimate]) -> PassTimes:
    """Weighted least squares, relative to the times, at the best s; c_0 and c are not negative."""
    knots = np.unique([point.b for found in seen.values() for point in found.model.points]).astype(float)
    first = min(point.tau_s for found in seen.values() for point in found.model.points)
    fits = [_fit_at(float(share), knots, seen, DRAFT_SHARE * first) for share in SHARES]
    share = int(np.argmin([cost for _, cost in fits]))
    solution = fits[share][0]
    plain = isotonic(np.maximum(solution[:-2], 1e-2 * first), np.ones(len(knots)))
    return PassTimes(knots, plain, float(SHARES[share]), solution[-2], solution[-1], seen)


def _fit_at(share: float, knots: Floats, seen: Mapping[int, Estimate], draft_s: float) -> tuple[Floats, float]:
    """p(b) at the knots, c_0 and c for a value of s, and what the fit leaves unexplained."""
    rows, right, weights = [], [], []
    for depth, found in seen.items():
        b, seconds, evidence = _curve(found)
        drafting = np.tile([float(depth > 0), float(depth)], (len(b), 1))
        rows.append(np.hstack([_mixing(b, knots, depth, share), drafting]) / seconds[:, None])
        right.append(np.ones(len(b)))
        weights.append(np.maximum(evidence / evidence.sum(), 1e-6))
    for column, guess, weight in ((-2, 0.0, GUESS_WEIGHT), (-1, 1.0, GUESS_WEIGHT / 100)):
        row = np.zeros((1, len(knots) + 2))
        row[0, column] = 1.0 / draft_s
        rows.append(row)
        right.append(np.array([guess]))
        weights.append(np.array([weight]))
    bends = np.diff(np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None], axis=0) * knots[1:-1, None]
    rows.append(np.pad(bends * DRAFT_SHARE / draft_s, ((0, 0), (0, 2))))
    right.append(np.zeros(len(bends)))
    weights.append(np.full(len(bends), STRAIGHT_WEIGHT / max(len(bends), 1)))
    table, target, root = np.vstack(rows), np.concatenate(right), np.sqrt(np.concatenate(weights))
    free = np.ones(len(knots) + 2, bool)
    while True:
        solution = np.zeros(len(free))
        solution[free] = np.linalg.lstsq(table[:, free] * root[:, None], target * root, rcond=None)[0]
        negative = free & (np.arange(len(free)) >= len(knots)) & (solution < 0)
        if not negative.any():
            return solution, float((((table @ solution - target) * root) ** 2).sum())
        free &= ~negative


def _mixing(b: Floats, knots: Floats, depth: int, share: float) -> Floats:
    """(b, knots) weights of p(knots) in (1 - s) p(b) + s p(b (d + 1))."""
    return (1.0 - share) * _between(b, knots) + share * _between(b * (depth + 1), knots)


def _between(b: Floats, knots: Floats) -> Floats:
    """(b, knots) weights of linear interpolation; beyond the last knot straight on, as DecodeModel.tau goes on."""
    units = np.eye(len(knots))
    inside = np.stack([np.interp(b, knots, unit) for unit in units], axis=1)
    last, half = knots[-1], max(1.0, knots[-1] / 2)
    rise = units[-1] - np.array([np.interp(half, knots, unit) for unit in units])
    return inside + np.maximum(b - last, 0.0)[:, None] / max(last - half, 1.0) * rise


def _curve(found: Estimate) -> tuple[Floats, Floats, Floats]:
    """Batch sizes that were measured, seconds there, and how well they are known."""
    b, seconds = np.array([(point.b, point.tau_s) for point in found.model.points], float).T
    evidence = np.array(found.evidence)
    known = evidence > 0
    return b[known], seconds[known], evidence[known]
