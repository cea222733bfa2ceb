"""TailSieve's two pools at a fixed allocation (q, m): the paper's routing without its controller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.allocation import UNIFORM, Allocation, check_allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.dispatch import DISPATCH
from tailsieve_rl.routing.policies.policy import Decision, SelfPlacing, Setup

# A sixteenth of the groups is the paper's converged isolation size (q = 4 of N = 64, section 4.4), and a quarter of
# the replicas lies between the splits it converges to.
DEFAULT_GROUP_SHARE = 1 / 16
DEFAULT_REPLICA_SHARE = 1 / 4


def default_allocation(setup: Setup) -> Allocation:
    """Where to start when nothing is configured; uniform when there is one replica or one group."""
    if setup.replicas < 2 or setup.groups < 2:
        return UNIFORM
    q = min(setup.groups - 1, max(1, round(setup.groups * DEFAULT_GROUP_SHARE)))
    return Allocation(q=q, m=max(1, round(setup.replicas * DEFAULT_REPLICA_SHARE)))


@dataclass(frozen=True, slots=True)
class TwoPool(SelfPlacing):
    """Tail groups on m replicas, fresh groups on the others, the same (q, m) in every step.

    Attributes:
        allocation: the fixed (q, m); (0, 0) is uniform routing by the same mechanism.
        dispatch: "request" spreads single responses within a pool, "group" keeps a group on one replica.
    """

    allocation: Allocation
    dispatch: str = "request"
    name: str = "two_pool"

    def start(self, setup: Setup) -> None:
        check_allocation(self.allocation, setup.groups, setup.replicas)

    def initial(self, state: None) -> Allocation:
        return self.allocation

    def decide(self, state: None, q: int) -> Decision:
        return Decision(m=self.allocation.m, q_next=self.allocation.q)

    def observe(self, state: None, outcome: StepOutcome) -> None:
        return None

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        return DISPATCH[self.dispatch](group, session, responses, pool)
