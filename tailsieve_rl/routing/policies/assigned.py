"""A placement that an oracle fixed in advance, from the lengths that it was told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.routing.plan import GroupTask, StepPlan
from tailsieve_rl.routing.policies.dispatch import by_request
from tailsieve_rl.routing.policies.policy import Lengths

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assigned:
    """A replica for each response; if that one is no longer alive, round-robin by request.

    Attributes:
        replica_of: name of the replica, by group and session.
    """

    replica_of: Mapping[tuple[str, int], str]

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        chosen = self.replica_of[group.uid, session]
        return chosen if chosen in pool else by_request(group, session, responses, pool)


def assign(plan: StepPlan, replica: ArrayLike) -> Assigned:
    """The placement of a step.

    Args:
        plan: the step, without a tail pool.
        replica: (groups, n) place in plan.bulk_replicas of each response, groups in the plan's order; (groups, 1) for
            whole groups.
    """
    rows = np.broadcast_to(np.asarray(replica), (len(plan.groups), plan.responses)).tolist()
    names = plan.bulk_replicas
    return Assigned(
        {
            (task.uid, session): names[place]
            for task, row in zip(plan.groups, rows, strict=True)
            for session, place in enumerate(row)
        }
    )


def known_lengths(policy: str, plan: StepPlan, lengths: Lengths | None) -> Ints:
    """The lengths that an oracle was told, (groups, n) tokens, groups in the plan's order.

    Raises:
        ValueError: naming the policy, if lengths are not known, or not for every response of the plan.
    """
    if lengths is None:
        raise ValueError(f"the policy {policy} is an oracle: it needs to be told the length of every response")
    for task in plan.groups:
        known = len(lengths.get(task.uid, ()))
        if known != plan.responses:
            raise ValueError(f"the policy {policy} was told {known} lengths of group {task.uid}, not {plan.responses}")
    return np.array([lengths[task.uid] for task in plan.groups], np.int64).reshape(-1, plan.responses)
