"""Fig. 2 and Fig. A.1: the optimum isolates the tail and balances, and the best top-k is near it."""

import numpy as np
import pytest

from tailsieve_rl.routing.makespan import completion_times
from tailsieve_rl.simulation.experiments import Options, experiment
from tailsieve_rl.simulation.experiments.optimality_gap import gaps
from tailsieve_rl.simulation.experiments.request_groups import PADDED_SHAPE, REQUESTS, SHAPES, padded, request_group


@pytest.fixture(scope="module")
def gap():
    return experiment("optimality-gap").run(Options(repeats=8))


@pytest.fixture(scope="module")
def figure_2():
    return experiment("oracle").run(Options(repeats=5))


def test_the_optimum_puts_a_few_long_requests_apart_and_both_replicas_finish_nearly_together(figure_2):
    tail, bulk = figure_2["optimum"]["tail"], figure_2["optimum"]["bulk"]
    assert len(tail["lengths"]) + len(bulk["lengths"]) == REQUESTS
    assert len(tail["lengths"]) <= 15
    assert np.mean(tail["lengths"]) > 3 * np.mean(bulk["lengths"])
    assert min(tail["time_s"], bulk["time_s"]) > 0.85 * figure_2["optimum_s"]


def test_the_optimum_can_be_recomputed_from_what_its_results_keep(figure_2):
    for side in figure_2["optimum"].values():
        again = completion_times(side["lengths"], figure_2["tau"])
        assert again == pytest.approx(side["completion_s"]) and again.max() == pytest.approx(side["time_s"])
    assert figure_2["optimum_s"] == pytest.approx(max(s["time_s"] for s in figure_2["optimum"].values()))


def test_step_time_falls_to_the_best_k_and_rises_after_it(figure_2):
    times, k = figure_2["top_k_times_s"], figure_2["k"]
    assert 0 < k < 15 and times[k] == pytest.approx(figure_2["top_k_s"])
    assert figure_2["optimum_s"] <= times[k] < figure_2["random_uniform_s"] < times[0]
    assert times[2 * k] > 1.05 * times[k]


def test_best_top_k_is_within_four_percent_of_the_optimum_on_every_profile(gap):
    for block in [gap, *(block for name, block in gap["shapes"].items() if name != PADDED_SHAPE)]:
        top_k = gaps(block["groups"], "top_k_s")
        assert (top_k >= -1e-9).all() and (top_k <= 0.04).all(), block["model"]
        assert block["top_k_within"]["1%"] >= 0.72 * len(block["groups"])


def test_top_k_fixed_ten_percent_and_random_halves_stand_in_that_order_on_every_profile(gap):
    for block in [gap, *(block for name, block in gap["shapes"].items() if name != PADDED_SHAPE)]:
        mean = block["mean_gap"]
        assert mean["top_k_s"] < mean["fixed_10pct_s"] < mean["random_uniform_s"], block["model"]


def test_on_plateaus_of_tau_top_k_loses_more_than_on_the_profile_they_were_made_from(gap):
    plateaus = gap["shapes"][PADDED_SHAPE]
    assert plateaus["mean_gap"]["top_k_s"] > gap["mean_gap"]["top_k_s"]


def test_a_padded_batch_costs_what_the_next_captured_one_does():
    plain = SHAPES[PADDED_SHAPE.split(",")[0]]()
    steps = padded(np.append(plain, np.full(8, plain[-1])))
    assert steps[0] == 0 and steps[1] == plain[1] and steps[3] == plain[4] and steps[9] == steps[16] == plain[16]
    assert (steps >= plain).all()


def test_groups_of_a_seed_are_different_and_repeat():
    assert (request_group(3, 1) == request_group(3, 1)).all()
    assert (request_group(3, 1) != request_group(3, 2)).any() and (request_group(3, 1) != request_group(4, 1)).any()


@pytest.mark.parametrize("name, repeats", [("oracle", 3), ("optimality-gap", 2)])
def test_the_figures_are_drawn(name, repeats, tmp_path):
    chosen = experiment(name)
    for path in chosen.draw(chosen.run(Options(repeats=repeats)), tmp_path):
        assert path.stat().st_size > 20_000
