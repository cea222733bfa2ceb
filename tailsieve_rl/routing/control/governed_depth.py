"""The controller of draft depths that follows what is measured."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tailsieve_rl.routing.decode_estimate import Decoding, decodings
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Acceptance, Depth, DraftDepths, acceptance
from tailsieve_rl.routing.draft_estimate import PassTimes, estimate_passes
from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.routing.outcome import ResponseRecord, StepOutcome
from tailsieve_rl.routing.setup import Setup

PoolLoad = tuple[tuple[int, ...], ...]
"""Tokens of each request of each replica of a pool, in one step."""

TAIL, BULK, UNIFORM = "tail", "bulk", "uniform"
"""The pools, as DraftDepths names their depths."""


@dataclass(frozen=True, slots=True)
class PoolStep:
    """What one pool decoded in one step.

    Attributes:
        pool: TAIL, BULK, or UNIFORM for all replicas.
        depth: that it ran at.
        requests: its requests.
    """

    pool: str
    depth: Depth
    requests: tuple[Decoding, ...]


@dataclass(frozen=True, slots=True)
class GovernedState:
    """Between two steps.

    Attributes:
        setup: N, n, R.
        depths: of the coming step.
        seen: pools of the last steps, and the last one at each other depth; oldest first.
        loads: by pool, what it had to decode in the last steps; UNIFORM is what all replicas would have had.
        accepted: by pool, how many drafts were accepted in the last step that had any.
        figures: for the report.
    """

    setup: Setup
    depths: DraftDepths
    seen: tuple[PoolStep, ...] = ()
    loads: Mapping[str, tuple[PoolLoad, ...]] = field(default_factory=dict)
    accepted: Mapping[str, Acceptance] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GovernedDepths:
    """Chooses each pool's depth by the time that its last requests would have taken at every depth.

    The first step drafts as deep as it can in the tail pool and not at all elsewhere, which shows both how many drafts
    are accepted and how long decoding takes without them. Under uniform routing these are two steps. Where no pool
    drafts any more, nothing is learned of drafts, and none will again.

    Attributes:
        max_depth: D, the deepest.
        model: tau at every depth from 0 to D; None: estimated from the run.
        apart: the pools' engines have different drafters, so that one pool says nothing of the other's drafts.
        gain: share of its time that a change must promise, so that depths which are as good do not alternate; a change
            to no drafts, or to a depth that never ran, need not promise any.
        history: steps that depths are judged by; as many as tau is estimated from elsewhere.
    """

    max_depth: int
    model: DecodeModel | None = None
    apart: bool = False
    gain: float = 0.01
    history: int = 5

    def start(self, setup: Setup) -> GovernedState:
        return GovernedState(setup, DraftDepths(tail=self.max_depth))

    def decide(self, state: GovernedState) -> DraftDepths:
        return state.depths

    def observe(self, state: GovernedState, outcome: StepOutcome) -> GovernedState:
        state = self._remember(state, outcome)
        models = self._models(state)
        chosen = {pool: self._choose(models[pool], state, pool) for pool in (TAIL, BULK, UNIFORM)}
        used = (TAIL, BULK) if outcome.plan.m else (UNIFORM, UNIFORM)
        figures = dict(zip(("draft_gain_tail", "draft_gain_bulk"), (chosen[pool][1] for pool in used), strict=True))
        depths = DraftDepths(**{pool: depth for pool, (depth, _) in chosen.items()})
        return replace(state, depths=depths, figures=figures)

    def report(self, state: GovernedState) -> Mapping[str, float]:
        return state.figures

    def _remember(self, state: GovernedState, outcome: StepOutcome) -> GovernedState:
        """With a step added. A depth that is not run any more is remembered by the last pool that ran it."""
        plan, records, keep = outcome.plan, outcome.records, self.history
        loads, accepted, new = dict(state.loads), {}, []
        for pool, replicas in _pools(outcome):
            of_pool = [record for record in records if record.replica in replicas]
            new.append(PoolStep(pool, getattr(plan.depths, pool), decodings(of_pool)))
            if drafted := acceptance(record.accepted for record in of_pool):
                accepted[pool] = drafted
            if pool != UNIFORM:
                loads[pool] = (*loads.get(pool, ()), _load(of_pool, replicas))[-keep:]
        loads[UNIFORM] = (*loads.get(UNIFORM, ()), _dealt(outcome, state.setup.replicas))[-keep:]
        seen = (*state.seen, *new)
        last = {(step.depth, step.pool if self.apart else None): at for at, step in enumerate(seen)}
        kept = {*last.values(), *range(max(0, len(seen) - 2 * keep), len(seen))}
        if self.apart or not accepted:
            accepted = {**state.accepted, **accepted}
        return replace(state, seen=tuple(seen[at] for at in sorted(kept)), loads=loads, accepted=accepted)

    def _models(self, state: GovernedState) -> dict[str, DecodeModel | None]:
        """tau at every depth for each pool; None as long as no request of known tokens was seen."""
        if self.model is not None:
            return dict.fromkeys((TAIL, BULK, UNIFORM), self.model)
        models: dict[str, DecodeModel | None] = {}
        passes = None if self.apart else _passes(state.seen)
        for pool in (TAIL, BULK, UNIFORM):
            known = [step for step in state.seen if not self.apart or not step.depth or step.pool == pool]
            found = _passes(known) if self.apart else passes
            models[pool] = found.model(range(self.max_depth + 1), self._accepted(state, pool)) if found else None
        return models

    def _accepted(self, state: GovernedState, pool: str) -> Acceptance | None:
        """The pool's own, for long responses may be easier to draft than others; else that of most verifications."""
        others = () if self.apart else state.accepted.values()
        return state.accepted.get(pool) or max(others, key=lambda accepted: accepted.verifications, default=None)

    def _choose(self, model: DecodeModel | None, state: GovernedState, pool: str) -> tuple[int, float]:
        """The depth of a pool for the coming step, and what it gains over none."""
        now = getattr(state.depths, pool)
        assert isinstance(now, int)
        if model is None:
            return now, 1.0
        if model.depths == (0,):  # no draft was verified yet
            return self.max_depth if state.loads.get(pool) else now, 1.0
        run = {step.depth for step in state.seen} if self.model is None else range(self.max_depth + 1)
        return self._best(model, state.loads.get(pool) or state.loads[UNIFORM], now, run)

    def _best(
        self, model: DecodeModel, loads: Sequence[PoolLoad], now: int, run: Container[Depth]
    ) -> tuple[int, float]:
        """The fastest depth for a pool, or the present one unless it is faster by enough; and its gain over none.

        A depth that never ran is tried when it looks as good: it is known only by the fit.
        """
        most = max((len(lengths) for load in loads for lengths in load), default=0)
        if not most:
            return now, 1.0
        seconds = []
        for depth in range(self.max_depth + 1):
            tau = model.table(most, depth)
            seconds.append(sum(max(float(replica_time(lengths, tau)) for lengths in load) for load in loads))
        best = int(np.argmin(seconds))
        enough = self.gain if best in run else 0.0
        chosen = best if seconds[best] < (1 - enough) * seconds[now] else now
        chosen = 0 if seconds[0] <= seconds[chosen] else chosen
        return chosen, seconds[0] / seconds[chosen]


def _pools(outcome: StepOutcome) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The pools of a step and their replicas."""
    plan = outcome.plan
    if not plan.m:
        return ((UNIFORM, plan.bulk_replicas),)
    return ((TAIL, plan.tail_replicas), (BULK, plan.bulk_replicas))


def _passes(known: Sequence[PoolStep]) -> PassTimes | None:
    try:
        return estimate_passes([step.requests for step in known])
    except ValueError:  # no request of known tokens yet
        return None


def _load(records: Sequence[ResponseRecord], replicas: Sequence[str]) -> PoolLoad:
    return tuple(tuple(r.response_tokens for r in records if r.replica == replica) or (0,) for replica in replicas)


def _dealt(outcome: StepOutcome, replicas: int) -> PoolLoad:
    """The batch's responses dealt out to all replicas in turn."""
    lengths = [tokens for group in outcome.consumed for tokens in group.lengths]
    return tuple(tuple(lengths[first::replicas]) or (0,) for first in range(replicas))
