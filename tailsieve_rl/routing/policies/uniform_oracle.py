"""Uniform Oracle: whole groups, all replicas alike in known length (paper A.2, the group-level bound of uniform)."""

from dataclasses import dataclass

from tailsieve_rl.routing.plan import StepPlan
from tailsieve_rl.routing.policies.assigned import Assigned, assign, known_lengths
from tailsieve_rl.routing.policies.balance import evened, longest_first
from tailsieve_rl.routing.policies.policy import Lengths, NoTail


@dataclass(frozen=True, slots=True)
class UniformOracle(NoTail):
    """Groups stay whole; each replica gets as even a share of all response tokens as moves and exchanges reach."""

    name: str = "uniform_oracle"

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Assigned:
        work = known_lengths(self.name, plan, lengths).sum(axis=1)
        replicas = len(plan.bulk_replicas)
        return assign(plan, evened(work, longest_first(work, replicas), replicas)[:, None])
