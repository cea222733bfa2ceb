"""What a controller has seen: lengths of consumed groups, and how fast the engines decode."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_estimate import Decoding, decodings, estimate
from tailsieve_rl.routing.decode_model import DecodeModel
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
        requests: of the last steps, what the estimate is made from.
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
        requests = (*self.requests, decodings(outcome.records))[-DECODE_STEPS:]
        try:
            fit = estimate(requests)
        except ValueError:  # no request of known tokens yet
            return replace(self, lengths=lengths, requests=requests)
        return replace(self, lengths=lengths, requests=requests, model=fit.model, residual=fit.residual)

    def figures(self) -> dict[str, float]:
        """The decode model in numbers: seconds per token of a lone request and at the largest known batch."""
        if self.model is None:
            return {}
        ends = {"tau_1": float(self.model.tau(1)), "tau_max": float(self.model.tau(self.model.points[-1].b))}
        return ends if self.residual is None else {**ends, "tau_residual": self.residual}


def no_evidence(responses: int, model: DecodeModel | None) -> Evidence:
    """Before the first step; without a model it is estimated online."""
    return Evidence(np.empty((0, responses), np.int64), model, online=model is None)
