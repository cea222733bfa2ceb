"""tau(b) from what a run does anyway: when each request decoded, where, and how many tokens it got (design.md, 8).

On a replica b(t) requests run at time t, so a request's tokens are the integral of v(b(t)) dt over its time, with
v = 1 / tau: linear in v. Requests of a replica suffer the same delays at the same time, so their errors are fitted as
what they are, shared: generalised least squares, in which two requests covary by the time that they ran together. In
effect each piece of the time line is compared with the one before it, instead of every request with the whole step
(a fit that took them as independent was two to three times less exact under jitter). Then v is made non-increasing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_model import DecodeModel, isotonic, model_of_curve
from tailsieve_rl.routing.draft import Depth
from tailsieve_rl.routing.outcome import ResponseRecord

Floats = NDArray[np.float64]

# Every batch size up to 6 is a knot of its own, above that one in twenty per cent: tau is smooth there, and more knots
# only fit noise.
EXACT_B = 6
KNOT_RATIO = 1.2
# A request's own variance (accepted drafts, its prefill) as a share of what it shares with the others of its replica.
OWN_NOISE = 0.2


@dataclass(frozen=True, slots=True)
class Decoding:
    """One request on one replica.

    Attributes:
        replica: name of the replica.
        start_s: when it began to decode.
        end_s: when it ended, by itself or aborted.
        tokens: tokens that it got in between; None if that is not known: it then only counts as running.
        depth: draft tokens that its replica ran at.
        accepted: its verifications by accepted drafts (see ResponseRecord); empty where not known.
    """

    replica: str
    start_s: float
    end_s: float
    tokens: float | None
    depth: Depth = 0
    accepted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fitted tau.

    Attributes:
        model: the fit; it has points where the run had batch sizes.
        residual: relative error of the tokens that it predicts for a request, root mean square by tokens.
        tokens: tokens that it was fitted to.
        evidence: (points of the model) how well each is known, as a weight.
    """

    model: DecodeModel
    residual: float
    tokens: int
    evidence: tuple[float, ...]


def decodings(records: Iterable[ResponseRecord]) -> tuple[Decoding, ...]:
    """What the records of a step say about decoding.

    A request decodes from its first token on. Where that moment is not known it counts as running from its dispatch,
    and its tokens are not used.

    Not for responses of several turns: between turns they wait for a tool, and this would count that as decoding.
    """
    return tuple(
        Decoding(r.replica, r.dispatch_s, r.end_s, None, r.draft_depth)
        if r.first_token_s is None
        else Decoding(r.replica, r.first_token_s, r.end_s, max(r.response_tokens - 1, 0), r.draft_depth, r.accepted)
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
    timelines = [
        _timeline(list(requests))
        for step in steps
        for _, requests in groupby(sorted(step, key=lambda d: d.replica), key=lambda d: d.replica)
    ]
    if not any(t.tokens.sum() > 0 for t in timelines):
        raise ValueError("tau cannot be estimated: no request with known tokens took any time")
    knots = _knots(max(int(t.running.max(initial=0)) for t in timelines))
    exposures = [t.exposure(knots) for t in timelines]
    seen = np.sum([x.sum(axis=0) for x in exposures], axis=0) > 0
    knots, exposures = knots[seen], [x[:, seen] for x in exposures]
    speed, evidence = _fit(exposures, timelines)
    tokens = np.concatenate([t.tokens for t in timelines])
    error = np.concatenate([x @ speed for x in exposures]) - tokens
    residual = float(np.sqrt((error**2 / np.maximum(tokens, 1.0)).sum() / tokens.sum()))
    model = model_of_curve(knots, 1.0 / speed, draft_depth)
    if len(model.points) > len(evidence):  # tau(1) was taken to be that of the first knot
        evidence = np.insert(evidence, 0, 0.0)
    return Estimate(model, residual, int(tokens.sum()), tuple(evidence.tolist()))


@dataclass(frozen=True, slots=True)
class _Timeline:
    """A replica's time line, cut into pieces wherever a request starts or ends.

    Attributes:
        cuts: (pieces + 1,) moments between the pieces.
        running: (pieces,) requests that run in each.
        start, end, tokens: (requests,) of those that took time and whose tokens are known.
    """

    cuts: Floats
    running: NDArray[np.int64]
    start: Floats
    end: Floats
    tokens: Floats

    def exposure(self, knots: NDArray[np.int64]) -> Floats:
        """(requests, knots) seconds that each request spent at each knot; in between, they are shared by nearness."""
        shares = np.stack([np.interp(self.running, knots, unit) for unit in np.eye(len(knots))], axis=1)
        spent = np.cumsum(np.diff(self.cuts)[:, None] * shares, axis=0)
        until = np.vstack([np.zeros(len(knots)), spent])
        exposure = until[np.searchsorted(self.cuts, self.end)] - until[np.searchsorted(self.cuts, self.start)]
        return np.where(exposure > 1e-12 * (self.cuts[-1] - self.cuts[0]), exposure, 0.0)

    def together(self) -> Floats:
        """(requests, requests) seconds that two requests both ran."""
        shared = np.minimum.outer(self.end, self.end) - np.maximum.outer(self.start, self.start)
        return np.maximum(shared, 0.0)


def _fit(exposures: Sequence[Floats], timelines: Sequence[_Timeline]) -> tuple[Floats, Floats]:
    """Non-increasing speed at each knot, tokens per second, and how much is known of it."""
    size = exposures[0].shape[1]
    normal, right = np.zeros((size, size)), np.zeros(size)
    for exposure, line in zip(exposures, timelines, strict=True):
        noise = line.together()
        noise[np.diag_indices_from(noise)] *= 1.0 + OWN_NOISE
        weighted = np.linalg.solve(noise, np.column_stack([exposure, line.tokens]))
        normal += exposure.T @ weighted[:, :size]
        right += exposure.T @ weighted[:, size]
    evidence = np.diag(normal)
    ridge = 1e-9 * evidence.mean()
    speed = -isotonic(-np.linalg.solve(normal + ridge * np.eye(size), right), evidence + ridge)
    return np.maximum(speed, speed[0] * 1e-3), evidence


def _timeline(requests: Sequence[Decoding]) -> _Timeline:
    start = np.array([d.start_s for d in requests])
    end = np.maximum([d.end_s for d in requests], start)
    cuts = np.unique(np.concatenate([start, end]))
    started, ended = (np.searchsorted(np.sort(times), cuts[:-1], side="right") for times in (start, end))
    known = np.array([d.tokens is not None for d in requests]) & (end > start)
    tokens = np.array([d.tokens or 0 for d in requests], float)
    return _Timeline(cuts, started - ended, start[known], end[known], tokens[known])


def _knots(most: int) -> NDArray[np.int64]:
    """Batch sizes at which speed is a parameter; linear in between. The largest one has a whole interval to itself."""
    exact = np.arange(1, EXACT_B + 1)
    beyond = (EXACT_B * KNOT_RATIO ** np.arange(1, 60)).round()
    return np.unique([*exact[exact < most], *beyond[beyond * KNOT_RATIO <= most], most]).astype(np.int64)
