"""Controllers in closed loop, in virtual time."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Controller, Fixed, Hierarchical, Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.simulation.experiments.cells import measure
from tailsieve_rl.simulation.experiments.static import best_static, static_step_s
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.run import SimulatedStep, Simulation
from tailsieve_rl.simulation.workloads import WORKLOADS, Workload, code_workload, math_workload

SETUP = Setup(groups=64, responses=8, replicas=8)
MODEL = profile("qwen3.5-4b")


def code(seed: int) -> Workload:
    return code_workload(seed, 8, evolving=False)


def run(controller: Controller, steps: int, seed: int = 0, records: bool = False) -> list[SimulatedStep]:
    simulation = Simulation(SETUP, code(seed), MODEL, TwoPool(controller), records=records)
    return list(simulation.steps(steps + 1))[:-1]


@pytest.mark.parametrize("q0", [1, 24])
def test_the_inner_loop_alone_brings_the_pools_closer_together(q0: int) -> None:
    steps = run(Hierarchical(Allocation(q0, 4), MODEL, outer=False), 50)
    assert {step.outcome.plan.m for step in steps} == {4}
    first, last = (np.mean([s.outcome.imbalance for s in part]) for part in (steps[:5], steps[-15:]))
    assert last < first
    assert 1 < steps[-1].outcome.plan.q < 16


@pytest.fixture(scope="module")
def streams() -> list[Workload]:
    return [code(seed) for seed in range(3)]


@pytest.fixture(scope="module")
def best(streams: list[Workload]) -> Allocation:
    return best_static(SETUP, streams, MODEL, 20)


def test_the_joint_controller_is_near_the_best_static_pair_from_any_start(
    streams: list[Workload], best: Allocation
) -> None:
    best_s = np.mean(static_step_s(best, SETUP, streams, MODEL, 40, converge=15))
    for start in (Allocation(1, 4), UNIFORM):
        ours = [measure(TwoPool(Joint(start, MODEL)), SETUP, s, MODEL, 15, 40).step_s for s in streams]
        assert np.mean(ours) < 1.03 * best_s


def test_its_proposal_after_four_steps_is_near_the_best_static_pair_too(
    streams: list[Workload], best: Allocation
) -> None:
    best_s = np.mean(static_step_s(best, SETUP, streams, MODEL, 60))
    reports = [run(Joint(Allocation(32, 7), MODEL), 5, seed)[4].report for seed in range(3)]
    proposed = [Allocation(int(report["proposed_q"]), int(report["proposed_m"])) for report in reports]
    assert np.mean([np.mean(static_step_s(at, SETUP, streams, MODEL, 60)) for at in proposed]) < 1.05 * best_s


@pytest.mark.parametrize("workload", ["uniform_lengths", "light_tail", "sky_t1", "math_swinging"])
def test_the_joint_controller_is_never_much_slower_than_uniform(workload: str) -> None:
    streams = [WORKLOADS[workload](seed, 8) for seed in range(3)]
    ours = [measure(TwoPool(Joint(default_allocation(SETUP), MODEL)), SETUP, s, MODEL, 0, 30).step_s for s in streams]
    base = [measure(Uniform(), SETUP, s, MODEL, 0, 30).step_s for s in streams]
    assert np.mean(ours) < 1.02 * np.mean(base)


@pytest.mark.parametrize(("workload", "most"), [("math_stepwise", 0.95), ("code_stepwise", 0.85)])
def test_groups_of_one_response_gain_from_isolation_too(workload: str, most: float) -> None:
    """As in distillation. Such a run cannot measure how alike responses to a prompt are: taken for unlike, the gain on
    code would be less than half, and math would be slower than under uniform routing."""
    setup, model = Setup(groups=256, responses=1, replicas=8), profile("qwen3-4b")
    streams = [WORKLOADS[workload](seed, 1) for seed in range(3)]
    policies = (TwoPool(Joint(default_allocation(setup), model)), Uniform())
    ours, base = (np.mean([measure(p, setup, s, model, 8, 12).step_s for s in streams]) for p in policies)
    assert ours < most * base


def test_a_decode_model_estimated_online_decides_as_the_known_one() -> None:
    known = run(Joint(default_allocation(SETUP), MODEL), 20)
    online = run(Joint(default_allocation(SETUP)), 20, records=True)
    assert [s.outcome.plan.allocation for s in online[8:]] == [s.outcome.plan.allocation for s in known[8:]]
    assert online[-1].report["tau_1"] == pytest.approx(float(MODEL.tau(1)), rel=0.05)


def test_predictions_come_true_on_average() -> None:
    """On math: rare responses at the cap decide steps of the code workload, and sixty do not average out."""
    policy = TwoPool(Joint(default_allocation(SETUP), MODEL))
    workload = math_workload(0, 8, evolving=False)
    steps = list(Simulation(SETUP, workload, MODEL, policy).steps(61))[20:-1]
    errors = [step.outcome.gen_time_s / step.report["predicted_s"] - 1 for step in steps]
    assert abs(np.mean(errors)) < 0.06


def test_no_group_waits_longer_than_a_step_and_every_batch_is_exact() -> None:
    for step in run(Hierarchical(Allocation(16, 3), MODEL), 40):
        outcome = step.outcome
        assert len(outcome.consumed) == SETUP.groups
        assert sum(group.tail for group in outcome.consumed) == outcome.plan.q


def test_a_uniform_run_by_request_is_faster_than_by_group() -> None:
    streams = [code(seed) for seed in range(3)]
    by_group = [measure(Uniform(), SETUP, s, MODEL, 0, 30).step_s for s in streams]
    by_request = static_step_s(UNIFORM, SETUP, streams, MODEL, 30)
    assert np.mean(by_request) < np.mean(by_group)


def test_a_slower_decode_model_of_the_bulk_pool_leaves_the_tail_pool_alone() -> None:
    slow = DecodeModel(tuple(type(p)(p.b, 2 * p.tau_s) for p in MODEL.points))
    policy = TwoPool(Fixed(Allocation(4, 2)))
    plain, mixed = (
        list(Simulation(SETUP, code(0), bulk, policy, tail=MODEL).steps(3))[1].outcome for bulk in (MODEL, slow)
    )
    assert mixed.bulk_time_s == pytest.approx(2 * plain.bulk_time_s)
    assert mixed.tail_time_s == pytest.approx(plain.tail_time_s)
