"""The controller of draft depths that follows what is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tailsieve_rl.routing.decode_estimate import Decoding, decodings
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth, DraftDepths
from tailsieve_rl.routing.draft_estimate import estimate_depths
from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.routing.outcome import ResponseRecord, StepOutcome
from tailsieve_rl.routing.setup import Setup

PoolLoad = tuple[tuple[int, ...], ...]
"""Tokens of each request of each replica of a pool, in one step."""


@dataclass(frozen=True, slots=True)
class GovernedState:
    """Between two steps.

    Attributes:
        setup: N, n, R.
        depths: of the coming step.
        requests: of the last steps, and of the last one at each other depth; oldest first.
        tail, bulk, uniform: what the pools decoded in the last steps, and what all replicas would have in one pool.
        figures: for the report.
    """

    setup: Setup
    depths: DraftDepths
    requests: tuple[tuple[Decoding, ...], ...] = ()
    tail: tuple[PoolLoad, ...] = ()
    bulk: tuple[PoolLoad, ...] = ()
    uniform: tuple[PoolLoad, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GovernedDepths:
    """Chooses each pool's depth by the time that its last requests would have taken at every depth.

    The first step drafts as deep as it can in the tail pool and not at all elsewhere, which shows both how many drafts
    are accepted and how long decoding takes without them. Under uniform routing these are two steps.

    Attributes:
        max_depth: D, the deepest.
        model: tau at every depth from 0 to D; None: estimated from the run.
        gain: share of its time that a change must promise, so that depths which are as good do not alternate.
        history: steps that depths are judged by; as many as tau is estimated from elsewhere.
    """

    max_depth: int
    model: DecodeModel | None = None
    gain: float = 0.01
    history: int = 5

    def start(self, setup: Setup) -> GovernedState:
        return GovernedState(setup, DraftDepths(tail=self.max_depth))

    def decide(self, state: GovernedState) -> DraftDepths:
        return state.depths

    def observe(self, state: GovernedState, outcome: StepOutcome) -> GovernedState:
        state = self._remember(state, outcome)
        model = self.model
        if model is None:
            try:
                model = estimate_depths(state.requests, range(self.max_depth + 1)).model
            except ValueError:  # no request of known tokens yet
                return state
        if model.depths == (0,):  # no draft was verified yet
            return replace(state, depths=replace(state.depths, tail=self.max_depth, uniform=self.max_depth))
        tail, tail_gain = self._best(model, state.tail, state.depths.tail)
        bulk, bulk_gain = self._best(model, state.bulk, state.depths.bulk)
        uniform, uniform_gain = self._best(model, state.uniform, state.depths.uniform)
        gains = (tail_gain, bulk_gain) if outcome.plan.m else (uniform_gain, uniform_gain)
        figures = dict(zip(("draft_gain_tail", "draft_gain_bulk"), gains, strict=True))
        return replace(state, depths=DraftDepths(tail, bulk, uniform), figures=figures)

    def report(self, state: GovernedState) -> Mapping[str, float]:
        return state.figures

    def _remember(self, state: GovernedState, outcome: StepOutcome) -> GovernedState:
        """With a step added. A depth that is not run any more is remembered by the last step that ran it."""
        plan, keep = outcome.plan, self.history
        requests = (*state.requests, decodings(outcome.records))
        recent = {request.depth for step in requests[-keep:] for request in step}
        old: dict[Depth, tuple[Decoding, ...]] = {}
        for step in requests[:-keep]:
            for depth in {request.depth for request in step} - recent:
                old[depth] = tuple(request for request in step if request.depth == depth)
        tail = (*state.tail, _load(outcome.records, plan.tail_replicas))[-keep:] if plan.m else state.tail
        bulk = (*state.bulk, _load(outcome.records, plan.bulk_replicas))[-keep:] if plan.m else state.bulk
        uniform = (*state.uniform, _dealt(outcome, state.setup.replicas))[-keep:]
        requests = (*old.values(), *requests[-keep:])
        return replace(state, requests=requests, tail=tail, bulk=bulk, uniform=uniform)

    def _best(self, model: DecodeModel, loads: Sequence[PoolLoad], now: Depth) -> tuple[int, float]:
        """The fastest depth for a pool, or the present one unless it is faster by enough; and its gain over none."""
        assert isinstance(now, int)
        most = max((len(lengths) for load in loads for lengths in load), default=0)
        if not most:
            return now, 1.0
        seconds = []
        for depth in range(self.max_depth + 1):
            tau = model.table(most, depth)
            seconds.append(sum(max(float(replica_time(lengths, tau)) for lengths in load) for load in loads))
        best = int(np.argmin(seconds))
        chosen = best if seconds[best] < (1 - self.gain) * seconds[now] else now
        return chosen, seconds[0] / seconds[chosen]


def _load(records: Sequence[ResponseRecord], replicas: Sequence[str]) -> PoolLoad:
    return tuple(tuple(r.response_tokens for r in records if r.replica == replica) or (0,) for replica in replicas)


def _dealt(outcome: StepOutcome, replicas: int) -> PoolLoad:
    """The batch's responses dealt out to all replicas in turn."""
    lengths = [tokens for group in outcome.consumed for tokens in group.lengths]
    return tuple(tuple(lengths[first::replicas]) or (0,) for first in range(replicas))
