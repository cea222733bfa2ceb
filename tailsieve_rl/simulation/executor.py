"""One step in virtual time: the simulator knows the lengths and computes the clock; the rules are the real ones."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.routing.draft import Acceptance, verified
from tailsieve_rl.routing.makespan import response_times, tokens_at
from tailsieve_rl.routing.outcome import GroupOutcome, ResponseRecord, ResponseStatus, StepOutcome
from tailsieve_rl.routing.plan import Pool, StepPlan
from tailsieve_rl.routing.policies import RoutingPolicy
from tailsieve_rl.routing.selection import select

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def run_step(
    plan: StepPlan,
    lengths: Ints,
    policy: RoutingPolicy,
    tail_tau: ArrayLike,
    bulk_tau: ArrayLike,
    records: bool = True,
    accepted: Mapping[Pool, Acceptance] = MappingProxyType({}),
) -> StepOutcome:
    """Execute a planned step: place, decode, cut off, complete.

    Args:
        plan: the step.
        lengths: (groups, n) response tokens of the plan's groups, in its order.
        policy: places the responses; an oracle is told the lengths.
        tail_tau: (batch sizes,) seconds per token on the tail pool's replicas.
        bulk_tau: (batch sizes,) seconds per token on the other replicas.
        records: whether the outcome has a record of every response; else only of the aborted ones.
        accepted: drafts that verifications accept, by pool; for the records of a plan that drafts.
    """
    replicas = [*plan.tail_replicas, *plan.bulk_replicas]
    places = _place(plan, lengths, policy, replicas)
    tau = np.stack(np.broadcast_arrays(tail_tau, bulk_tau))[(np.arange(len(replicas)) >= plan.m).astype(int)]
    is_tail = np.array([group.tail for group in plan.groups], bool)
    finished, cutoff = response_times(lengths, places, is_tail, plan.fresh_needed, tau if plan.m else bulk_tau)
    group_s = finished.max(axis=1)
    fresh = {group.uid: float(t) for group, t in zip(plan.groups, group_s, strict=True) if not group.tail}
    chosen = select(fresh, plan.fresh_needed)
    left = set(chosen.candidates)
    consumed = tuple(
        GroupOutcome(group.uid, group.tail, tuple(row), float(t))
        for group, row, t in zip(plan.groups, lengths.tolist(), group_s, strict=True)
        if group.uid not in left
    )
    tail_s = max((g.finished_s for g in consumed if g.tail), default=0.0)
    bulk_s = max((g.finished_s for g in consumed if not g.tail), default=0.0)
    return StepOutcome(
        plan=plan,
        consumed=consumed,
        candidates=chosen.candidates,
        cutoff_s=chosen.cutoff_s,
        tail_time_s=tail_s,
        bulk_time_s=bulk_s,
        gen_time_s=max(tail_s, bulk_s),
        records=_records(plan, lengths, places, replicas, finished, float(cutoff), left, tau, records, accepted),
    )


def _place(plan: StepPlan, lengths: Ints, policy: RoutingPolicy, replicas: list[str]) -> Ints:
    """(groups, n) index of each response's replica."""
    known = {group.uid: row for group, row in zip(plan.groups, lengths.tolist(), strict=True)}
    placement, number = policy.placement(plan, known), {name: i for i, name in enumerate(replicas)}
    load: Counter[str] = Counter()
    places = np.empty((len(plan.groups), plan.responses), np.int64)
    for i, group in enumerate(plan.groups):
        pool = plan.replicas_of(group.pool)
        for session in range(plan.responses):
            name = placement.place(group, session, plan.responses, pool, load)
            load[name] += 1
            places[i, session] = number[name]
    return places


def _records(
    plan: StepPlan,
    lengths: Ints,
    places: Ints,
    replicas: list[str],
    finished: Floats,
    cutoff: float,
    left: set[str],
    tau: Floats,
    everything: bool,
    accepted: Mapping[Pool, Acceptance],
) -> tuple[ResponseRecord, ...]:
    """What each response did. A response decodes from the start: its first token counts as there at once."""
    reached = {
        int(r): float(tokens_at(lengths[places == r], tau[r], cutoff))
        for r in np.unique(places[[group.uid in left for group in plan.groups]])
    }
    made = []
    for i, group in enumerate(plan.groups):
        aborted = group.uid in left
        if not aborted and not everything:
            continue
        for session in range(plan.responses):
            replica, length, end = int(places[i, session]), int(lengths[i, session]), float(finished[i, session])
            if aborted and end > cutoff:
                length, end = min(length, int(reached[replica])), cutoff
            drafts: tuple[int, tuple[int, ...]] = (0, ())
            if group.pool in accepted:
                drafts = verified(max(length - 1, 0), plan.depth_of(group.pool), accepted[group.pool])
            made.append(
                ResponseRecord(
                    uid=group.uid,
                    prompt_index=int(group.uid),
                    session=session,
                    attempt=group.attempt,
                    pool=group.pool,
                    replica=replicas[replica],
                    status=ResponseStatus.ABORTED if aborted else ResponseStatus.CONSUMED,
                    prompt_tokens=0,
                    response_tokens=length,
                    dispatch_s=0.0,
                    first_token_s=0.0,
                    end_s=end,
                    draft_depth=plan.depth_of(group.pool),
                    drafted_tokens=drafts[0],
                    accepted=drafts[1],
                )
            )
    return tuple(made)
