"""Table 2 and Fig. 6a: drafts over acceptance, routed or not, and a budget of drafts by route."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import Setup, TwoPool, Uniform
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments import Options, depth_budget, experiment, speculation
from tailsieve_rl.simulation.experiments.cells import measure
from tailsieve_rl.simulation.experiments.fixed_depths import Depths, depth_times, uniform_times
from tailsieve_rl.simulation.profiles.published import PUBLISHED, Published
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.workloads import math_workload

MODEL = "qwen3.5-4b"


@pytest.fixture(scope="module")
def results():
    few = {"acceptances": (0.2, 0.8, 1.0), "depth_acceptances": (0.8,), "workloads": ("math",)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speculation, "CONVERGE", 8)
        patch.setattr(speculation, "MEASURED", 8)
        return speculation.run(Options(repeats=1), models=(MODEL,), **few)


@pytest.fixture(scope="module")
def budgets():
    return depth_budget.run(Options(repeats=2), models=(MODEL,), bases=(1, 4), workloads=("math",))


def test_every_cell_of_the_paper_has_a_curve_that_rises_with_acceptance(results):
    cells = results["cells"]
    assert [(cell["workload"], cell["method"]) for cell in cells] == [("math", "mtp"), ("math", "dflash")]
    for cell in cells:
        for key in ("routed", "uniform"):
            gains = [point[key]["speedup"] for point in cell["points"]]
            assert gains == sorted(gains) and gains[0] < 1.1 and gains[-1] > 2


def test_the_acceptance_that_meets_the_paper_is_where_the_curve_crosses_its_speedup(results):
    for cell in results["cells"]:
        at, gains = zip(*((p["acceptance"], p["routed"]["speedup"]) for p in cell["points"]), strict=True)
        assert np.interp(cell["met_at"], at, gains) == pytest.approx(cell["paper"]["drafts"])
        assert cell["reached"] == (cell["met_at"] <= cell["published"][1])


def test_a_speedup_beyond_the_curve_is_never_met_and_one_below_it_always():
    points = [{"acceptance": a, "routed": {"speedup": gain}} for a, gain in ((0.2, 1.0), (1.0, 3.0))]
    assert speculation._met_at(3.1, points) is None
    assert speculation._met_at(0.9, points) == 0.2
    assert speculation._met_at(2.0, points) == pytest.approx(0.6)


def test_depths_by_route_beat_the_best_uniform_depth_and_that_beats_no_drafts(results):
    for cell in results["depths"]:
        gains = {name: found["speedup"] for name, found in cell["policies"].items()}
        assert gains["uniform"] == 1.0 and gains["uniform_best_depth"] > 1.5
        assert gains["uniform_batch_schedule"] > 0.99 * gains["uniform_best_depth"]
        assert gains["tailsieve_route_depth"] > 1.05 * gains["uniform_best_depth"]
        assert 1.03 * gains["tailsieve_route_depth"] > gains["tailsieve_route_depth_all_drafted"] > gains["tailsieve"]
        depths = cell["policies"]["tailsieve_route_depth"]
        assert depths["draft_depth_tail"] >= depths["draft_depth_bulk"] > 0
        assert cell["policies"]["uniform_batch_schedule"]["draft_depth_bulk"] is None


def test_a_budget_is_spent_in_full_by_every_split(budgets):
    for cell in budgets["cells"]:
        for budget in cell["budgets"]:
            splits = [split["depths"] for split in budget["splits"]]
            assert splits == [[tail, 2 * budget["base"] - tail] for tail in range(2 * budget["base"] + 1)]


def test_the_best_split_is_at_least_as_good_as_an_even_one_and_beats_uniform_routing(budgets):
    for cell in budgets["cells"]:
        for budget in cell["budgets"]:
            assert budget["routed_over_even"]["speedup"] >= 0.999
            assert budget["routed_over_uniform"]["speedup"] > 1.03
        small, large = cell["budgets"]
        assert small["routed"]["depths"][0] > small["routed"]["depths"][1], "a scarce budget goes to the tail"
        assert large["routed_over_even"]["speedup"] < small["routed_over_even"]["speedup"] + 0.01


@pytest.mark.parametrize("name", ["speculation", "depth-budget"])
def test_the_figures_are_drawn(name, results, budgets, tmp_path):
    for path in experiment(name).draw(results if name == "speculation" else budgets, tmp_path):
        assert path.stat().st_size > 20_000


SETUP = Setup(16, 8, 4)


@pytest.mark.parametrize("at", [UNIFORM, Allocation(2, 1)], ids=str)
def test_steps_at_fixed_depths_are_the_executors(at):
    model, workload = profile_with_drafts(MODEL, "mtp", (2, 4)), math_workload(0, 8, evolving=False)
    pair = Depths(2, 2) if at.is_uniform else Depths(4, 2)
    times = depth_times([at], [pair, Depths(0, 2)], SETUP, workload, model, 6)
    assert len(times) == (1 if at.is_uniform else 2)
    policy = RouteDepth(TwoPool(Fixed(at)), FixedDepths(DraftDepths(pair.tail, pair.bulk, pair.bulk)))
    ran = measure(policy, SETUP, workload, model, converge=1, count=6)
    assert times[at, pair].mean() == pytest.approx(ran.step_s)
    assert ran.draft_depths == pair


@pytest.mark.parametrize("depth", [0, 4, (0, *[4] * 20, 2)], ids=str)
def test_uniform_steps_at_a_depth_or_a_schedule_are_the_executors(depth):
    model, workload = profile_with_drafts(MODEL, "mtp", (2, 4)), math_workload(0, 8, evolving=False)
    policy = RouteDepth(Uniform(), FixedDepths(DraftDepths(uniform=depth)))
    ran = measure(policy, SETUP, workload, model, converge=1, count=6)
    assert uniform_times(SETUP, workload, model, depth, 6).mean() == pytest.approx(ran.step_s)
    assert ran.draft_depths[1] == (depth if isinstance(depth, int) else None)


def test_published_acceptances_yield_the_tokens_that_were_published():
    assert Published("mtp", "m", "w", 3, 1 + 0.8 + 0.64 + 0.512, "s").acceptance == pytest.approx(0.8)
    assert Published("mtp", "m", "w", 1, 1.9, "s").acceptance == pytest.approx(0.9)
    assert all(0.5 < found.acceptance < 1 and found.source for found in PUBLISHED)
