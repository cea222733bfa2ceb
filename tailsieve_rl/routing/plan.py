"""What one step will do, fixed before anything is dispatched."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.draft import NO_DRAFTS, Depth, DraftDepths


class Pool(StrEnum):
    """The pool that a group runs in."""

    TAIL = "tail"
    BULK = "bulk"


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One group of a step: a prompt and its n responses, never split.

    Attributes:
        uid: the group's name, the same in every step that it is dispatched in.
        attempt: 1 at the first dispatch, one more at each regeneration. Whatever carries an older number is refused.
        tail: a group left over by the previous step; it must complete in this one.
        pool: where its responses run.
        ordinal: its place among the groups of its pool, which round-robin dispatch counts by.
    """

    uid: str
    attempt: int
    tail: bool
    pool: Pool
    ordinal: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step, before dispatch.

    Attributes:
        step: number of the policy update that will consume the groups (the warm-up rollout is step 0).
        responses: n, responses a group.
        q: groups regenerated in this step.
        q_next: groups that will be left over for the next step.
        m: tail replicas in effect.
        groups: tail groups first, then fresh ones.
        tail_replicas: names of the tail pool's replicas; empty under uniform routing.
        bulk_replicas: names of the bulk pool's replicas; all of them when there is no tail pool.
        depths: draft tokens of the pools.
    """

    step: int
    responses: int
    q: int
    q_next: int
    m: int
    groups: tuple[GroupTask, ...]
    tail_replicas: tuple[str, ...]
    bulk_replicas: tuple[str, ...]
    depths: DraftDepths = NO_DRAFTS

    @property
    def allocation(self) -> Allocation:
        return Allocation(self.q, self.m)

    @property
    def fresh_needed(self) -> int:
        """Fresh groups whose completion is the cutoff."""
        return len(self.groups) - self.q - self.q_next

    def replicas_of(self, pool: Pool) -> tuple[str, ...]:
        """Names of the replicas of a pool."""
        return self.tail_replicas if pool is Pool.TAIL else self.bulk_replicas

    def depth_of(self, pool: Pool) -> Depth:
        """Draft tokens of the replicas of a pool."""
        if not self.m:
            return self.depths.uniform
        return self.depths.tail if pool is Pool.TAIL else self.depths.bulk


def fresh_groups(groups: int, q: int, q_next: int) -> int:
    """F = N - q + q_next: fresh prompts that a step draws, so that N are consumed and q_next are left over."""
    return groups - q + q_next


def step_size(groups: int, left: int, q_next: int) -> tuple[int, int]:
    """Groups that a step consumes, and leaves over, where every prompt of a finite set is consumed once.

    Args:
        groups: N, as long as so many are left.
        left: prompts of the set that no step has consumed, tail groups included.
        q_next: groups that the policy wants to leave over.
    """
    consumed = min(groups, left)
    return consumed, min(q_next, left - consumed)


def plan_step(
    *,
    step: int,
    responses: int,
    tail: Sequence[tuple[str, int]],
    fresh: Sequence[str],
    q_next: int,
    m: int,
    replicas: Sequence[str],
    depths: DraftDepths = NO_DRAFTS,
) -> StepPlan:
    """Put the tail groups and the fresh groups of a step into pools.

    With no tail group there is no tail pool, whatever m says: no replica may idle. With m = 0 the tail groups run
    among the fresh ones on all replicas, and must complete like any tail group (the way to uniform routing).

    Args:
        step: number of the policy update.
        responses: n, responses a group.
        tail: (uid, attempt to come) of each group left over by the previous step.
        fresh: uids of newly drawn groups.
        q_next: groups to leave over.
        m: tail replicas wanted; fewer when so many replicas died that the bulk pool would be left without one.
        replicas: names of the replicas that are alive, in a stable order; the first m are the tail pool.
        depths: draft tokens of the pools.

    Raises:
        ValueError: if no replica is alive, m is negative, the cutoff could not be reached, or a group comes twice.
    """
    if not replicas:
        raise ValueError(f"step {step}: no replica is alive")
    if q_next < 0 or q_next > len(fresh):
        raise ValueError(f"step {step}: {q_next} groups cannot be left over from {len(fresh)} fresh ones")
    if m < 0:
        raise ValueError(f"step {step}: m = {m} tail replicas, must be 0 or more")
    effective_m = min(m, len(replicas) - 1) if tail else 0
    tail_pool = Pool.TAIL if effective_m else Pool.BULK
    tail_tasks = tuple(GroupTask(uid, attempt, True, tail_pool, i) for i, (uid, attempt) in enumerate(tail))
    first = 0 if effective_m else len(tail_tasks)
    fresh_tasks = tuple(GroupTask(uid, 1, False, Pool.BULK, first + i) for i, uid in enumerate(fresh))
    groups = tail_tasks + fresh_tasks
    if len({g.uid for g in groups}) != len(groups):
        raise ValueError(f"step {step}: a group was planned twice")
    return StepPlan(
        step=step,
        responses=responses,
        q=len(tail_tasks),
        q_next=q_next,
        m=effective_m,
        groups=groups,
        tail_replicas=tuple(replicas[:effective_m]),
        bulk_replicas=tuple(replicas[effective_m:]),
        depths=depths,
    )
