"""Hypothesis strategies for runs of random_steps, and how thoroughly they are searched."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.policies import LeastLoaded, RoutingPolicy, Setup, TwoPool, Uniform

from .random_steps import Scenario, Scripted

thorough = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
        shipped.append(TwoPool(Allocation(q, m), dispatch))
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
