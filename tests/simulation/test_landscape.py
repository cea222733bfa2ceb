"""Fig. 4: the best isolation size and split move with the tail."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.simulation.experiments import Options
from tailsieve_rl.simulation.experiments.landscape import landscape
from tailsieve_rl.simulation.experiments.steady import bulk_run, pools
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import tail_strength


@pytest.fixture(scope="module")
def found():
    return landscape("qwen3.5-4b", range(2), Options(), steps=20)


@pytest.mark.parametrize("at", [Allocation(4, 2), Allocation(9, 1)])
def test_steps_computed_at_once_are_those_of_the_executor(at):
    setup, workload, model = Setup(64, 8, 4), tail_strength("real", 0), profile("qwen3.5-35b-a3b-tp2")
    run = Simulation(setup, workload, model, TwoPool(Fixed(at)))
    executed = [step.outcome.gen_time_s for step in run.steps(11)][1:-1]
    tau = model.table(1024)
    computed = bulk_run(pools(workload, 64, 10), setup.replicas - at.m, tau).step_s(at.q, at.m, tau)
    assert computed == pytest.approx(executed)


def test_the_best_pair_is_another_one_when_the_tail_is_weak(found):
    best = {w["tail"]: (w["best"]["q"], w["best"]["m"]) for w in found["workloads"]}
    assert best["weak"] != best["real"]
    assert found["loss_with_the_best_pair_of"]["weak"]["real"] > 0.02
    assert found["loss_with_the_best_pair_of"]["real"]["weak"] > 0.02


def test_the_more_replicas_the_tail_has_the_more_groups_it_takes_at_best(found):
    for workload in found["workloads"]:
        sizes = [optimum["q"] for optimum in workload["best_of_m"]]
        assert sizes == sorted(sizes)


def test_on_dense_models_the_best_pair_beats_uniform_routing_of_either_kind(found):
    for workload in found["workloads"]:
        assert not workload["boundary_is_best"]
        assert workload["best"]["speedup"] > 1.05
        assert workload["best"]["over_uniform_by_request"] > 1.02


def test_with_more_isolation_the_early_advantage_of_a_token_falls_and_its_late_penalty_rises(found):
    for workload in found["workloads"]:
        work = np.array([row["work"] for row in workload["proxy"]])
        advantage, penalty = (
            np.array([row[key] for row in workload["proxy"]]) / work for key in ("advantage_s", "penalty_s")
        )
        assert (np.diff(work) > 0).all()
        assert advantage[0] > advantage[7] > advantage[-1] == pytest.approx(0.0, abs=1e-6)
        assert penalty[0] < penalty[7] < penalty[-1]
