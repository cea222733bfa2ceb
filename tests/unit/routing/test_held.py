"""A policy that stops adapting."""

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.policies import Setup, default_allocation
from tailsieve_rl.routing.policies.held import Held
from tailsieve_rl.routing.policies.named import named_policy
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import WORKLOADS

SETUP = Setup(64, 8, 8)


def _allocations(after: int, steps: int) -> list[Allocation]:
    adapting = named_policy("tailsieve", SETUP, default_allocation(SETUP), profile("qwen3.5-4b"))
    workload = WORKLOADS["math_stepwise"](0, 8)
    run = Simulation(SETUP, workload, profile("qwen3.5-4b"), Held(adapting, after))
    return [step.outcome.plan.allocation for step in run.steps(steps + 1)][:steps]


def test_it_adapts_first_and_then_keeps_its_allocation() -> None:
    adapted, held = _allocations(after=20, steps=10), _allocations(after=6, steps=10)
    assert len(set(adapted)) > 2
    assert held[:6] == adapted[:6]
    assert len(set(held[6:])) == 1 and held[6].m == held[5].m
