"""A routing policy of one's own: a tail pool of fixed size, whose q follows the balance of the pools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies.policy import SelfPlacing
from tailsieve_rl.routing.setup import Decision, Setup


@dataclass(frozen=True, slots=True)
class NudgedState:
    """Between two steps.

    Attributes:
        setup: N, n, R.
        q: groups that the coming step leaves over.
    """

    setup: Setup
    q: int


@dataclass(frozen=True, slots=True)
class Nudged(SelfPlacing):
    """After each step q moves by one group: up if the tail pool finished first, else down.

    Attributes:
        tail_replicas: m.
    """

    tail_replicas: int = 2
    name: str = "nudged"

    def start(self, setup: Setup) -> NudgedState:
        return NudgedState(setup, q=max(1, setup.groups // 16))

    def initial(self, state: NudgedState) -> Allocation:
        return Allocation(state.q, self.tail_replicas)

    def decide(self, state: NudgedState, q: int) -> Decision:
        return Decision(m=self.tail_replicas if q else 0, q_next=state.q)

    def observe(self, state: NudgedState, outcome: StepOutcome) -> NudgedState:
        if (outcome.plan.q, outcome.plan.q_next) != (state.q, state.q):
            return state  # a change of q is on its way: this step is not like those to come
        q = state.q + (1 if outcome.tail_time_s < outcome.bulk_time_s else -1)
        return NudgedState(state.setup, min(max(q, 1), state.setup.groups // 4))

    def report(self, state: NudgedState) -> Mapping[str, float]:
        return {"proposed_q": state.q, "proposed_m": self.tail_replicas}

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        return min(pool, key=lambda replica: load[replica])  # the first of those alike
