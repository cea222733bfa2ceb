"""The best static pair, computed at once, is the executor's."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.simulation.experiments.cells import measure
from tailsieve_rl.simulation.experiments.static import best_static, static_grid, static_step_s, static_times
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.workloads import Workload, code_workload, math_workload

COUNT = 6


def executed(
    at: Allocation, setup: Setup, streams: list[Workload], model: str, count: int = COUNT, converge: int = 1
) -> list[float]:
    policy = TwoPool(Fixed(at))
    return [measure(policy, setup, stream, profile(model), converge, count).step_s for stream in streams]


@pytest.mark.parametrize("factory", [math_workload, code_workload])
@pytest.mark.parametrize(("model", "replicas"), [("qwen3.5-35b-a3b-tp2", 4), ("qwen3.5-4b", 5)])
def test_the_search_finds_the_pair_and_the_times_that_the_executor_gives(factory, model, replicas):
    setup = Setup(groups=20, responses=8, replicas=replicas)
    streams = [factory(seed, 8, evolving=False) for seed in range(3)]
    times = {at: executed(at, setup, streams, model) for at in static_grid(setup)}
    for index, stream in enumerate(streams):
        found = static_times(times, setup, stream, profile(model), COUNT)
        assert found == pytest.approx({at: of[index] for at, of in times.items()})
    best = best_static(setup, streams, profile(model), COUNT)
    assert np.mean(times[best]) == pytest.approx(min(np.mean(of) for of in times.values()))


@pytest.mark.parametrize("at", [UNIFORM, Allocation(6, 3)])
def test_steps_before_the_measured_ones_are_left_out(at):
    setup, streams = Setup(64, 8, 8), [code_workload(0, 8, evolving=True)]
    expected = executed(at, setup, streams, "qwen3.5-4b", count=4, converge=5)
    assert static_step_s(at, setup, streams, profile("qwen3.5-4b"), 4, converge=5) == pytest.approx(expected)


def test_the_first_step_cannot_be_measured_for_its_tail_set_is_the_warm_ups():
    with pytest.raises(ValueError, match="second step"):
        static_times([UNIFORM], Setup(8, 2, 2), code_workload(0, 2), profile("qwen3.5-4b"), 4, converge=0)
