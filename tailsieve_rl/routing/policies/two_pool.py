"""TailSieve: a tail pool and a bulk pool (paper 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.controller import Controller
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.dispatch import DISPATCH
from tailsieve_rl.routing.policies.policy import SelfPlacing
from tailsieve_rl.routing.setup import Decision, Setup

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
    """Tail groups on m replicas, fresh groups on the others; a controller moves (q, m).

    Attributes:
        controller: what decides (q, m); (0, 0) is uniform routing by the same mechanism.
        dispatch: "request" spreads single responses within a pool, "group" keeps a group on one replica.
    """

    controller: Controller
    dispatch: str = "request"
    name: str = "two_pool"

    def start(self, setup: Setup) -> Any:
        return self.controller.start(setup)

    def initial(self, state: Any) -> Allocation:
        return self.controller.initial(state)

    def decide(self, state: Any, q: int) -> Decision:
        return self.controller.decide(state, q)

    def observe(self, state: Any, outcome: StepOutcome) -> Any:
        return self.controller.observe(state, outcome)

    def report(self, state: Any) -> Mapping[str, float]:
        return self.controller.report(state)

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        return DISPATCH[self.dispatch](group, session, responses, pool)
