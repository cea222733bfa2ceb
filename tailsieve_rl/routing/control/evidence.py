"""What a controller has seen: lengths of consumed groups, and how fast the engines decode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_estimate import Decoding, Estimate, decodings, estimate
from tailsieve_rl.routing.decode_model import DecodeModel, Floats
from tailsieve_rl.routing.draft import Depth, depth_at
from tailsieve_rl.routing.draft_estimate import DepthEstimate, estimate_depths
from tailsieve_rl.routing.outcome import StepOutcome

Ints = NDArray[np.int64]

DECODE_STEPS = 5
"""Steps that tau(b) is estimated from: hundreds of requests each, which leaves it within two per cent."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Seen up to now. Nothing in it is of a group that was not consumed: lengths of aborted responses are not known.

    Attributes:
        lengths: (groups, n) response tokens of consumed groups, oldest first.
        model: the decode model in use; None until the first estimate.
        online: whether the model is estimated from the run itself, else it was given.
        requests: of the last steps, and of earlier ones at other depths: what the estimate is made from.
        residual: of the last estimate.
    """

    lengths: Ints
    model: DecodeModel | None
    online: bool
    requests: tuple[tuple[Decoding, ...], ...] = ()
    residual: float | None = None

    def add(self, outcome: StepOutcome, keep_groups: int) -> "Evidence":
        """With a step added; only so many of the latest groups are kept."""
        seen = np.array([group.lengths for group in outcome.consumed], np.int64)
        lengths = np.concatenate([self.lengths, seen])[-keep_groups:]
        if not self.online:
            return replace(self, lengths=lengths)
        requests = _recent((*self.requests, decodings(outcome.records)))
        drafts = outcome.plan.depths
        try:
            fit = _fit(requests, (drafts.tail, drafts.bulk, drafts.uniform))
        except ValueError:  # no request of known tokens yet
            return replace(self, lengths=lengths, requests=requests)
        return replace(self, lengths=lengths, requests=requests, model=fit.model, residual=fit.residual)

    def tau(self, most: int, depth: Depth) -> Floats:
        """The decode model's table up to `most` requests at a draft depth; at the nearest known one if need be."""
        assert self.model is not None
        known = self.model.depths
        if self.online and len(known) == 1:
            return self.model.table(most, known[0])
        if self.online and not isinstance(depth, int):
            depth = depth_at(depth, most)
        if isinstance(depth, int):
            asked = depth
            depth = min(known, key=lambda other: abs(other - asked))
        return self.model.table(most, depth)

    def figures(self) -> dict[str, float]:
        """The decode model at its least depth: seconds per token of a lone request and at the largest known batch."""
        if self.model is None:
            return {}
        depth, largest = self.model.depths[0], max(point.b for point in self.model.points)
        ends = {"tau_1": float(self.model.tau(1, depth)), "tau_max": float(self.model.tau(largest, depth))}
        return ends if self.residual is None else {**ends, "tau_residual": self.residual}


def _recent(steps: Sequence[tuple[Decoding, ...]]) -> tuple[tuple[Decoding, ...], ...]:
    """The last steps, and of those before the last requests at each other depth: what a pass takes does not change."""
    kept = list(steps[-DECODE_STEPS:])
    for step in reversed(steps[:-DECODE_STEPS]):
        known = {request.depth for later in kept for request in later}
        if others := tuple(request for request in step if request.depth not in known):
            kept.insert(0, others)
    return tuple(kept)


def _fit(requests: Sequence[Sequence[Decoding]], depths: Sequence[Depth]) -> Estimate | DepthEstimate:
    """One curve where all ran at the same depth or schedule, else one for each depth in use."""
    ran = {d.depth for step in requests for d in step}
    numbers = [depth for depth in depths if isinstance(depth, int)]
    if len(ran) == 1 or len(numbers) < len(depths):
        only = next(iter(ran))
        return estimate(requests, only if isinstance(only, int) else 0)
    return estimate_depths(requests, numbers)


def no_evidence(responses: int, model: DecodeModel | None) -> Evidence:
    """Before the first step; without a model it is estimated online."""
    return Evidence(np.empty((0, responses), np.int64), model, online=model is None)
