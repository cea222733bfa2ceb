"""Which fresh groups a step consumes, and which it leaves for the tail pool of the next one (paper 2.3, 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Selection:
    """The fresh groups of a step, parted by the cutoff.

    Attributes:
        consumed: uids in order of completion.
        candidates: uids of the groups left over, the next step's tail set, in the order they were given.
        cutoff_s: completion time of the last consumed group, seconds; None when no fresh group was needed.
    """

    consumed: tuple[str, ...]
    candidates: tuple[str, ...]
    cutoff_s: float | None


def select(finished_s: Mapping[str, float], needed: int) -> Selection:
    """Part fresh groups at the cutoff: the first `needed` by completion time, then by uid, are consumed.

    Args:
        finished_s: completion time of each fresh group, seconds; `inf` for one that did not finish.
        needed: groups that the step consumes of them.

    Raises:
        ValueError: if fewer than `needed` groups finished, or `needed` is negative.
    """
    order = sorted(finished_s, key=lambda uid: (finished_s[uid], uid))
    done = sum(t < inf for t in finished_s.values())
    if not 0 <= needed <= done:
        raise ValueError(f"the cutoff needs {needed} fresh groups, {done} finished: it must be between 0 and {done}")
    consumed = tuple(order[:needed])
    taken = set(consumed)
    candidates = tuple(uid for uid in finished_s if uid not in taken)
    return Selection(consumed, candidates, finished_s[consumed[-1]] if consumed else None)


def capture_rate(work: Mapping[str, int], tail: Sequence[str]) -> float | None:
    """Share of the truly longest groups of a batch that had been caught as tail groups.

    The q groups with most work (ties by uid) are compared with the q groups that ran as tail.

    Args:
        work: response tokens of every consumed group.
        tail: uids of the consumed groups that were tail groups.

    Returns:
        A number in [0, 1], or None when there was no tail group.
    """
    if not tail:
        return None
    longest = sorted(work, key=lambda uid: (-work[uid], uid))[: len(tail)]
    return len(set(longest) & set(tail)) / len(tail)
