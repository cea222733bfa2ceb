"""The two quantities that TailSieve controls: isolated groups q and tail replicas m (paper 2.4, 3.2)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allocation:
    """Where the groups of a step run.

    Attributes:
        q: groups regenerated apart from the fresh ones.
        m: replicas of the tail pool; the other R - m are the bulk pool.
    """

    q: int
    m: int

    @property
    def is_uniform(self) -> bool:
        """(0, 0): every group on every replica, the boundary of the same mechanism."""
        return self.q == 0 and self.m == 0

    def __str__(self) -> str:
        return f"(q={self.q}, m={self.m})"


UNIFORM = Allocation(0, 0)


def check_allocation(allocation: Allocation, groups: int, replicas: int) -> None:
    """Refuse an allocation that no step could run.

    Args:
        allocation: what is asked for.
        groups: N, groups a step consumes.
        replicas: R, engines in all.

    Raises:
        ValueError: naming the key, the value and the range that would do.
    """
    q, m = allocation.q, allocation.m
    if not 0 <= q < groups:
        raise ValueError(
            f"allocation.initial_groups={q}: q must be between 0 and N-1 = {groups - 1} "
            f"(N = data.train_batch_size = {groups})"
        )
    if m < 0 or (m > 0 and m >= replicas):
        raise ValueError(
            f"allocation.initial_replicas={m}: m must be between 0 and R-1 = {replicas - 1}, so that the bulk pool "
            f"keeps a replica (R = {replicas} rollout replicas)"
        )
    if (q == 0) != (m == 0):
        raise ValueError(
            f"allocation.initial_groups={q} with allocation.initial_replicas={m}: "
            "both must be 0 (uniform routing) or both positive"
        )
