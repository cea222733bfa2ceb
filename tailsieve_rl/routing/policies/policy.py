"""What a routing policy is. One policy a file; each is usable in training, on emulated replicas and in virtual time."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask, StepPlan
from tailsieve_rl.routing.setup import Decision, Setup

Lengths = Mapping[str, Sequence[int]]
"""Response tokens of each of a group's n responses, by uid: what only an oracle is told."""


class Placement(Protocol):
    """Where each response of one step runs."""

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        """Choose the replica of one response.

        Args:
            group: its group.
            session: which of the group's responses.
            responses: n.
            pool: live replicas of the group's pool, in a stable order.
            load: running requests of each replica.
        """
        ...


class RoutingPolicy(Protocol):
    """Decides the pools of each step and the replica of each response.

    State is a frozen, picklable value that the caller keeps: the same outcomes give the same decisions.
    """

    @property
    def name(self) -> str:
        """What settings, results and charts call it."""
        ...

    def start(self, setup: Setup) -> Any:
        """The state before the first step."""
        ...

    def initial(self, state: Any) -> Allocation:
        """The allocation that the warm-up prepares: its q groups are the first step's tail set."""
        ...

    def decide(self, state: Any, q: int) -> Decision:
        """Fix m for the coming step, whose tail set has q groups, and q for the one after it."""
        ...

    def observe(self, state: Any, outcome: StepOutcome) -> Any:
        """The state after a step was seen."""
        ...

    def report(self, state: Any) -> Mapping[str, float]:
        """What the policy knows and proposes, by metric name: `predicted_s` (of the coming step), `proposed_q`, ..."""
        ...

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Placement:
        """How the responses of a planned step are spread.

        Args:
            plan: the step.
            lengths: of every group of the plan, where they are known in advance (replayed or simulated).

        Raises:
            ValueError: if the policy is an oracle and there are none.
        """
        ...


class NoTail:
    """The half of a policy that never leaves a group over: every group runs on all replicas."""

    __slots__ = ()

    def start(self, setup: Setup) -> None:
        return None

    def initial(self, state: None) -> Allocation:
        return UNIFORM

    def decide(self, state: None, q: int) -> Decision:
        return Decision(m=0, q_next=0)

    def observe(self, state: None, outcome: StepOutcome) -> None:
        return None

    def report(self, state: None) -> Mapping[str, float]:
        return {}


class SelfPlacing:
    """The half of a policy that places responses by rules of its own, whatever the step."""

    __slots__ = ()

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Self:
        return self
