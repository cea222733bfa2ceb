"""The running step as a state machine: responses finish, the cutoff falls, the step completes.

| event                          | group is tail | group is fresh, before the cutoff      | fresh, after the cutoff |
|--------------------------------|---------------|----------------------------------------|-------------------------|
| a response finishes            | counted       | counted                                | refused                 |
| the last response of the group | consumed      | consumed; the cutoff if it was the one | refused                 |
| a response of an older attempt | refused       | refused                                | refused                 |
| a response comes twice         | an error      | an error                               | refused, if left over   |

The step is complete when the cutoff has fallen and every tail group is consumed. At the cutoff every fresh group that
is not consumed becomes a candidate; a candidate never goes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tailsieve_rl.routing.plan import GroupTask, StepPlan


class Verdict(StrEnum):
    """What became of a finished response."""

    WAITING = "waiting"
    """Counted; the group still waits for other responses."""
    CONSUMED = "consumed"
    """It completed its group, which this step consumes."""
    REFUSED = "refused"
    """It belongs to an older attempt or to a candidate: it must not be published."""


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far a group is: lengths of its finished responses by session (tokens), and when the last one finished."""

    task: GroupTask
    lengths: Mapping[int, int]
    finished_s: float | None = None


@dataclass(frozen=True, slots=True)
class StepState:
    """The running step; every transition returns a new value.

    Attributes:
        plan: what is being run.
        groups: progress by uid.
        fresh_consumed: uids of consumed fresh groups, in order of completion.
        tail_consumed: uids of consumed tail groups, in order of completion.
        cutoff_s: when the cutoff fell; None before it.
    """

    plan: StepPlan
    groups: Mapping[str, GroupProgress]
    fresh_consumed: tuple[str, ...] = ()
    tail_consumed: tuple[str, ...] = ()
    cutoff_s: float | None = None

    @property
    def complete(self) -> bool:
        """Every group that this step consumes has finished generating."""
        return self.cutoff_s is not None and len(self.tail_consumed) == self.plan.q

    @property
    def candidates(self) -> tuple[str, ...]:
        """Groups left over, in plan order; empty before the cutoff."""
        if self.cutoff_s is None:
            return ()
        return tuple(uid for uid, g in self.groups.items() if not g.task.tail and g.finished_s is None)

    def is_current(self, uid: str, attempt: int) -> bool:
        """Whether work for this attempt of this group may go on."""
        group = self.groups.get(uid)
        if group is None or group.task.attempt != attempt:
            return False
        return group.task.tail or group.finished_s is not None or self.cutoff_s is None


def begin(plan: StepPlan) -> StepState:
    """The state before the first response; the cutoff has already fallen if no fresh group is needed."""
    groups = {task.uid: GroupProgress(task, {}) for task in plan.groups}
    return StepState(plan, groups, cutoff_s=0.0 if plan.fresh_needed == 0 else None)


def response_finished(
    state: StepState, uid: str, session: int, attempt: int, tokens: int, at_s: float
) -> tuple[StepState, Verdict]:
    """Count a response that finished generating.

    Args:
        state: the running step.
        uid: its group.
        session: which of the group's n responses.
        attempt: the attempt it was generated in.
        tokens: its length.
        at_s: when it finished, seconds since the step's first dispatch.

    Raises:
        ValueError: if the same response is reported twice or the session is not one of the group's.
    """
    if not state.is_current(uid, attempt):
        return state, Verdict.REFUSED
    group = state.groups[uid]
    if session in group.lengths or not 0 <= session < state.plan.responses:
        raise ValueError(
            f"step {state.plan.step}: response {session} of group {uid} finished twice or is not one of "
            f"0..{state.plan.responses - 1}"
        )
    lengths = {**group.lengths, session: tokens}
    if len(lengths) < state.plan.responses:
        return _with_group(state, replace(group, lengths=lengths)), Verdict.WAITING
    state = _with_group(state, replace(group, lengths=lengths, finished_s=at_s))
    if group.task.tail:
        return replace(state, tail_consumed=(*state.tail_consumed, uid)), Verdict.CONSUMED
    fresh = (*state.fresh_consumed, uid)
    cutoff_s = at_s if len(fresh) == state.plan.fresh_needed else None
    return replace(state, fresh_consumed=fresh, cutoff_s=cutoff_s), Verdict.CONSUMED


def _with_group(state: StepState, group: GroupProgress) -> StepState:
    return replace(state, groups={**state.groups, group.task.uid: group})
