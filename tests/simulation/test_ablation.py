"""A.2: each component matters, and what varies a workload leaves the rest of it alone."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.policies import LeastLoaded, Setup, Uniform
from tailsieve_rl.simulation.experiments import Options, ablation
from tailsieve_rl.simulation.experiments.ablated import RandomTail, capped
from tailsieve_rl.simulation.experiments.cells import measure
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.workloads import math_workload

PROMPTS = np.arange(4096)


@pytest.fixture(scope="module")
def results():
    return ablation.run(Options(repeats=2), workloads=("math",))


def test_selecting_by_the_cutoff_is_what_makes_isolation_pay(results):
    (cell,) = results["components"]
    found = {key: policy["speedup"] for key, policy in cell["policies"].items()}
    assert found["no_selection"] < 0.97 < 1.03 < found["tailsieve"]


def test_single_requests_are_dealt_out_better_than_groups(results):
    (cell,) = results["components"]
    assert cell["policies"]["tailsieve"]["step_s"] < cell["policies"]["no_request_dispatch"]["step_s"]


def test_every_length_and_every_concurrency_is_measured(results):
    assert [cell["cap"] for cell in results["output_length"]] == list(ablation.CAPS)
    assert [cell["requests_a_replica"] for cell in results["concurrency"]] == [256, 128, 64, 32]


def test_a_cap_shortens_the_longest_output_and_not_the_work():
    plain = math_workload(0, 8, evolving=False)
    cut = capped(plain, 4096)
    before, after = (w.lengths(PROMPTS, np.ones_like(PROMPTS), 1) for w in (plain, cut))
    assert after.mean() == pytest.approx(before.mean(), rel=0.03)
    assert after.max() == cut.cap < 0.5 * before.max()


def test_a_random_tail_consumes_what_uniform_routing_consumes():
    setup, workload, model = Setup(16, 8, 4), math_workload(0, 8), profile("qwen3.5-4b")
    uniform, random = (
        measure(policy, setup, workload, model, 1, 3) for policy in (Uniform(), RandomTail(Allocation(4, 2)))
    )
    for one, other in zip(uniform.steps, random.steps, strict=True):
        assert {g.uid: g.lengths for g in one.outcome.consumed} == {g.uid: g.lengths for g in other.outcome.consumed}
    assert uniform.wasted_fraction == random.wasted_fraction == 0


@pytest.mark.parametrize("at", [Allocation(0, 0), Allocation(1, 0), Allocation(0, 1)])
def test_a_random_tail_without_groups_or_replicas_is_no_tail(at):
    setup, workload, model = Setup(16, 8, 4), math_workload(0, 8), profile("qwen3.5-4b")
    single = measure(LeastLoaded(), setup, workload, model, 1, 3)
    assert measure(RandomTail(at), setup, workload, model, 1, 3).step_s == pytest.approx(single.step_s)


def test_the_figure_is_drawn(results, tmp_path):
    for path in ablation.draw(results, tmp_path):
        assert path.stat().st_size > 20_000
