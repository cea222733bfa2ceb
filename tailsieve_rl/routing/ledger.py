"""Where every prompt is. Nothing that was drawn is lost, repeated or dispatched twice."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tailsieve_rl.routing.plan import GroupTask, StepPlan


class ConservationError(RuntimeError):
    """A prompt was lost, repeated, starved or consumed out of turn."""


@dataclass(frozen=True, slots=True)
class TailGroup:
    """A group that waits for the next step.

    Attributes:
        uid: its name.
        attempt: dispatches so far.
        since: the step whose cutoff left it over.
    """

    uid: str
    attempt: int
    since: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The books of a run, between and during steps.

    drawn = consumed + discarded + len(tail) + len(running) at all times.

    Attributes:
        drawn: prompts taken from the data.
        consumed: groups that were trained on.
        discarded: prompts of the warm-up rollout that are never trained (paper A.3).
        tail: groups left over by the last step.
        running: the groups of the step that is running.
        step: the last step that finished.
        tail_age_max: most steps that a consumed group ever waited; 1 unless a rule is broken.
    """

    drawn: int = 0
    consumed: int = 0
    discarded: int = 0
    tail: tuple[TailGroup, ...] = ()
    running: tuple[GroupTask, ...] = ()
    step: int = 0
    tail_age_max: int = 0

    def begin(self, plan: StepPlan) -> "Ledger":
        """Enter the groups of a step that is about to be dispatched.

        Raises:
            ConservationError: if a step is running, a tail group is missing from the plan, or a fresh one is known.
        """
        if self.running:
            raise ConservationError(f"step {plan.step} began while {len(self.running)} groups were running")
        planned_tail = tuple((g.uid, g.attempt) for g in plan.groups if g.tail)
        expected = tuple((g.uid, g.attempt + 1) for g in self.tail)
        if sorted(planned_tail) != sorted(expected):
            raise ConservationError(
                f"step {plan.step} must regenerate exactly the tail set {expected}, the plan has {planned_tail}"
            )
        fresh = [g.uid for g in plan.groups if not g.tail]
        known = {uid for uid, _ in expected}
        if known & set(fresh):
            raise ConservationError(f"step {plan.step} draws groups that are in the tail set: {known & set(fresh)}")
        return replace(
            self,
            drawn=self.drawn + len(fresh),
            tail=(),
            running=plan.groups,
            tail_age_max=max([self.tail_age_max, *(plan.step - g.since for g in self.tail)]),
        )

    def finish(self, step: int, consumed: Iterable[str], candidates: Iterable[str], discard: bool = False) -> "Ledger":
        """Book a finished step.

        Args:
            step: its number.
            consumed: uids of the groups that it completed.
            candidates: uids of the groups left over.
            discard: the warm-up: what it completed is not trained.

        Raises:
            ConservationError: unless the two together are exactly the running groups and no tail group is left over.
        """
        done, left = tuple(consumed), tuple(candidates)
        running = {g.uid: g for g in self.running}
        booked, expected = Counter(done + left), Counter(list(running))
        if booked != expected:
            wrong = sorted((booked - expected) + (expected - booked))
            raise ConservationError(
                f"step {step}: {len(done)} groups completed and {len(left)} left over, "
                f"but {len(running)} were running; lost or doubled: {wrong[:8]}"
            )
        starved = [uid for uid in left if running[uid].tail]
        if starved:
            raise ConservationError(f"step {step}: tail groups must complete, {starved[:8]} were left over again")
        return replace(
            self,
            consumed=self.consumed + (0 if discard else len(done)),
            discarded=self.discarded + (len(done) if discard else 0),
            tail=tuple(TailGroup(uid, running[uid].attempt, step) for uid in left),
            running=(),
            step=step,
        )

    def check(self) -> None:
        """Raise ConservationError unless the books balance."""
        placed = self.consumed + self.discarded + len(self.tail) + len(self.running)
        if self.drawn != placed:
            raise ConservationError(f"{self.drawn} prompts were drawn but {placed} are accounted for: {self}")
