"""tau(b) from what a run does anyway: when each request decoded, where, and how many tokens it got (design.md, 8).

On a replica b(t) requests run at time t, so a request's tokens are the integral of v(b(t)) dt over its time, with
v = 1 / tau. That is linear in v. v is fitted by expectation-maximisation: tokens are dealt out to the batch sizes that
a request went through, in proportion to the present v, and v becomes tokens over time, made non-increasing. For
Poisson counts this climbs to the likeliest non-increasing v; any noise that does not favour a batch size averages out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_model import DecodeModel, fit_isotonic, isotonic
from tailsieve_rl.routing.outcome import ResponseRecord

Floats = NDArray[np.float64]

# Every batch size up to 16 is a knot of its own, above that one in about eight per cent: there tau is smooth, and few
# samples are as large.
EXACT_B = 16
KNOT_RATIO = 1.08
ITERATIONS = 300
CONVERGED = 1e-5


@dataclass(frozen=True, slots=True)
class Decoding:
    """One request on one replica.

    Attributes:
        replica: name of the replica.
        start_s: when it began to decode.
        end_s: when it ended, by itself or aborted.
        tokens: tokens that it got in between; None if that is not known: it then only counts as running.
    """

    replica: str
    start_s: float
    end_s: float
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fitted tau.

    Attributes:
        model: the fit; it has points where the run had batch sizes.
        residual: relative error of the tokens that it predicts for a request, root mean square by tokens.
        tokens: tokens that it was fitted to.
    """

    model: DecodeModel
    residual: float
    tokens: int


def decodings(records: Iterable[ResponseRecord]) -> tuple[Decoding, ...]:
    """What the records of a step say about decoding.

    A request decodes from its first token on. Where that moment is not known it counts as running from its dispatch,
    and its tokens are not used.
    """
    return tuple(
        Decoding(r.replica, r.dispatch_s, r.end_s, None)
        if r.first_token_s is None
        else Decoding(r.replica, r.first_token_s, r.end_s, max(r.response_tokens - 1, 0))
        for r in records
    )


def estimate(steps: Iterable[Sequence[Decoding]], draft_depth: int = 0) -> Estimate:
    """Fit tau to the requests of some steps.

    Args:
        steps: the requests of each step, in the step's own time. Replicas that differ in draft depth are separate fits.
        draft_depth: depth that all of them ran at.

    Raises:
        ValueError: if no request with known tokens took any time.
    """
    replicas = [
        list(requests)
        for step in steps
        for _, requests in groupby(sorted(step, key=lambda d: d.replica), key=lambda d: d.replica)
    ]
    timelines = [_timeline(requests) for requests in replicas]
    knots = _knots(max((int(b.max()) for _, b, _ in timelines), default=0))
    exposure = np.concatenate([time @ _hats(b, knots) for time, b, _ in timelines] or [np.zeros((0, len(knots)))])
    tokens = np.concatenate([counts for _, _, counts in timelines] or [np.zeros(0)])
    known = (exposure.sum(axis=1) > 0) & ~np.isnan(tokens)
    if not tokens[known].sum() > 0:
        raise ValueError("tau cannot be estimated: no request with known tokens took any time")
    exposure, tokens = exposure[known], tokens[known]
    seen = exposure.sum(axis=0) > 0
    exposure, knots = exposure[:, seen], knots[seen]
    speed = _fit(exposure, tokens)
    error = (exposure @ speed - tokens) / np.maximum(tokens, 1.0)
    weights = exposure.sum(axis=0) * speed
    samples = zip(knots.tolist(), (1.0 / speed).tolist(), weights.tolist(), strict=True)
    return Estimate(
        fit_isotonic(samples, draft_depth),
        residual=float(np.sqrt(np.average(error**2, weights=tokens))),
        tokens=int(tokens.sum()),
    )


def _fit(exposure: Floats, tokens: Floats) -> Floats:
    """The likeliest non-increasing speed at each knot, tokens per second."""
    time = exposure.sum(axis=0)
    speed = np.full(len(time), tokens.sum() / time.sum())
    for _ in range(ITERATIONS):
        dealt = speed * (exposure.T @ (tokens / (exposure @ speed)))
        better = -isotonic(-dealt / time, time)
        better = np.maximum(better, better[0] * 1e-6)
        done = np.abs(better / speed - 1.0).max() < CONVERGED
        speed = better
        if done:
            break
    return speed


def _timeline(requests: Sequence[Decoding]) -> tuple[Floats, NDArray[np.int64], Floats]:
    """A replica's time line, cut wherever a request starts or ends.

    Returns:
        (requests, pieces) seconds of each request in each piece, (pieces,) running requests, (requests,) tokens, NaN
        where they are not known.
    """
    start = np.array([d.start_s for d in requests])
    end = np.maximum([d.end_s for d in requests], start)
    cuts = np.unique(np.concatenate([start, end]))
    lasts = np.diff(cuts)
    runs = (start[:, None] <= cuts[None, :-1]) & (end[:, None] >= cuts[None, 1:])
    tokens = np.array([np.nan if d.tokens is None else d.tokens for d in requests], float)
    return runs * lasts, runs.sum(axis=0), tokens


def _knots(most: int) -> NDArray[np.int64]:
    """Batch sizes at which speed is a parameter; linear in between."""
    beyond = EXACT_B * KNOT_RATIO ** np.arange(1, 200)
    grid = np.unique(np.concatenate([np.arange(1, EXACT_B + 1), beyond.round()]))
    return np.append(grid[grid < most], most).astype(np.int64)


def _hats(b: NDArray[np.int64], knots: NDArray[np.int64]) -> Floats:
    """(pieces, knots): share of each piece that counts for each of the two knots around its batch size."""
    return np.stack([np.interp(b, knots, unit) for unit in np.eye(len(knots))], axis=1)
