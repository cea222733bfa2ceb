"""What random_steps is made to run: scripted policies, hypothesis strategies, and how thoroughly they are searched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies import Decision, LeastLoaded, RoutingPolicy, Setup, TwoPool, Uniform
from tailsieve_rl.routing.policies.dispatch import DISPATCH
from tailsieve_rl.routing.policies.policy import SelfPlacing

from .random_steps import Scenario

thorough = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Scripted(SelfPlacing):
    """A policy that goes through any sequence of (q, m), as a controller in trouble might. Its state counts steps."""

    script: tuple[Allocation, ...]
    dispatch: str = "request"
    name: str = "scripted"

    def start(self, setup: Setup) -> int:
        return 0

    def initial(self, state: int) -> Allocation:
        return self.script[0]

    def decide(self, state: int, q: int) -> Decision:
        return Decision(m=self.script[state].m, q_next=self.script[(state + 1) % len(self.script)].q)

    def observe(self, state: int, outcome: StepOutcome) -> int:
        return state + 1

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        return DISPATCH[self.dispatch](group, session, responses, pool)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    return Setup(groups=draw(st.integers(1, 6)), responses=draw(st.integers(1, 4)), replicas=draw(st.integers(1, 6)))


@st.composite
def allocations(draw: st.DrawFn, setup: Setup) -> Allocation:
    """Any (q, m) that a transition can pass through: the boundary, q without m, m without q, q = N - 1."""
    return Allocation(q=draw(st.integers(0, setup.groups - 1)), m=draw(st.integers(0, setup.replicas - 1)))


@st.composite
def policies(draw: st.DrawFn, setup: Setup, steps: int) -> RoutingPolicy:
    """Mostly scripts, which reach every transition; the shipped policies now and then."""
    dispatch = draw(st.sampled_from(["request", "group"]))
    scripted = st.lists(allocations(setup), min_size=steps, max_size=steps).map(
        lambda script: Scripted(tuple(script), dispatch)
    )
    shipped: list[RoutingPolicy] = [Uniform(), LeastLoaded()]
    if setup.groups > 1 and setup.replicas > 1:
        q, m = draw(st.integers(1, setup.groups - 1)), draw(st.integers(1, setup.replicas - 1))
        shipped.append(TwoPool(Fixed(Allocation(q, m)), dispatch))
    return draw(st.one_of(scripted, scripted, scripted, st.sampled_from(shipped)))


@st.composite
def scenarios(draw: st.DrawFn, warmup: bool | None = None, ties_by_uid: bool | None = None) -> Scenario:
    setup = draw(setups())
    steps = draw(st.integers(1, 6))
    some_steps = st.frozensets(st.integers(0, steps), max_size=3)
    return Scenario(
        setup=setup,
        policy=draw(policies(setup, steps)),
        steps=steps,
        warmup=draw(st.booleans()) if warmup is None else warmup,
        deaths=draw(some_steps),
        failures=draw(some_steps),
        ties_by_uid=draw(st.booleans()) if ties_by_uid is None else ties_by_uid,
        seed=draw(st.integers(0, 2**32)),
    )
