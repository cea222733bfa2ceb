"""StreamRL-style Oracle: the longest responses on dedicated replicas, skewness-aware dispatch (paper A.2)."""

from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.plan import StepPlan
from tailsieve_rl.routing.policies.assigned import Assigned, assign, known_lengths
from tailsieve_rl.routing.policies.balance import longest_first
from tailsieve_rl.routing.policies.policy import Lengths, NoTail


@dataclass(frozen=True, slots=True)
class StreamRLOracle(NoTail):
    """The longest fifth of all responses runs on a few replicas, with few responses each; the others on the rest.

    On the dedicated replicas the tokens are even (longest first), on the others the counts (round-robin).

    Attributes:
        dedicated: replicas for the longest responses, the first of the step's. The paper does not say how many; the
            experiments try every number and report the best.
        share: of all responses, rounded to a whole number, that count as longest.
    """

    dedicated: int
    share: float = 0.2
    name: str = "streamrl_oracle"

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"{self.name}: share = {self.share} of the responses must be within 0 and 1")

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Assigned:
        replicas = len(plan.bulk_replicas)
        if not 1 <= self.dedicated < replicas:
            raise ValueError(
                f"{self.name}: dedicated = {self.dedicated} must be 1 or more of {replicas} replicas, not all"
            )
        known = known_lengths(self.name, plan, lengths)
        flat = known.ravel()
        longest = np.zeros(len(flat), bool)
        longest[np.argsort(-flat, kind="stable")[: round(self.share * len(flat))]] = True
        replica = np.empty(len(flat), np.int64)
        replica[longest] = longest_first(flat[longest], self.dedicated)
        replica[~longest] = self.dedicated + np.arange((~longest).sum()) % (replicas - self.dedicated)
        return assign(plan, replica.reshape(known.shape))
