"""Made-up outcomes of steps."""

from tailsieve_rl.routing.outcome import GroupOutcome, StepOutcome
from tailsieve_rl.routing.plan import plan_step


def outcome_of(
    *,
    q: int,
    fresh: int,
    q_next: int,
    m: int,
    tail_s: float,
    bulk_s: float,
    lengths: tuple[int, ...] = (10, 20),
    replicas: int = 4,
) -> StepOutcome:
    """A step in which every group has the same lengths and its pool's time."""
    plan = plan_step(
        step=1,
        responses=len(lengths),
        tail=[(f"t{i}", 2) for i in range(q)],
        fresh=[f"f{i}" for i in range(fresh)],
        q_next=q_next,
        m=m,
        replicas=[f"r{i}" for i in range(replicas)],
    )
    kept = [group for group in plan.groups if group.tail] + [g for g in plan.groups if not g.tail][: fresh - q_next]
    consumed = tuple(GroupOutcome(g.uid, g.tail, lengths, tail_s if g.tail else bulk_s) for g in kept)
    left = tuple(g.uid for g in plan.groups if g not in kept)
    return StepOutcome(plan, consumed, left, bulk_s, tail_s, bulk_s, max(tail_s, bulk_s))
