"""Seer-style Oracle: single responses, all replicas alike in known length (paper A.2)."""

from dataclasses import dataclass

from tailsieve_rl.routing.plan import StepPlan
from tailsieve_rl.routing.policies.assigned import Assigned, assign, known_lengths
from tailsieve_rl.routing.policies.balance import longest_first
from tailsieve_rl.routing.policies.policy import Lengths, NoTail


@dataclass(frozen=True, slots=True)
class SeerOracle(NoTail):
    """Groups are not kept whole: each response, longest first, goes to the replica with fewest tokens so far."""

    name: str = "seer_oracle"

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Assigned:
        known = known_lengths(self.name, plan, lengths)
        return assign(plan, longest_first(known.ravel(), len(plan.bulk_replicas)).reshape(known.shape))
