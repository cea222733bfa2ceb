"""Appendix E in virtual time: what routing does to the lengths that are trained on, and what it does not."""

import numpy as np
import pytest

from tailsieve_rl.simulation.experiments.bias_regimes import drifting, stable, transition
from tailsieve_rl.simulation.workloads import math_workload, sky_t1

TOLERANCE = 0.005


@pytest.fixture(scope="module")
def workload():
    return math_workload(seed=0, responses=8, evolving=False)


@pytest.fixture(scope="module")
def as_run_and_by_prompt(workload):
    return stable("math", workload, q=4, steps=1000)


@pytest.fixture(scope="module")
def up_and_down(workload):
    return transition(workload, change=8, cycles=40)


def test_a_selector_that_depends_on_the_prompt_alone_biases_neither_the_mean_nor_any_interval(as_run_and_by_prompt):
    by_prompt = as_run_and_by_prompt[1]
    for found in (by_prompt, *by_prompt["intervals"]):
        low, high = found["ci95"]
        assert -TOLERANCE < low <= 0 <= high < TOLERANCE


def test_the_race_to_the_cutoff_shortens_the_mean_by_what_the_covariance_of_choice_and_length_says(
    as_run_and_by_prompt,
):
    as_run = as_run_and_by_prompt[0]
    assert -0.025 < as_run["ci95"][0] < as_run["ci95"][1] < -0.008
    assert as_run["bias"] == pytest.approx(as_run["predicted"][0], abs=0.003)
    assert abs(as_run["bias"]) < as_run["bound"][0] + 0.002
    for interval in as_run["intervals"]:
        assert -TOLERANCE < interval["ci95"][0] < interval["ci95"][1] < TOLERANCE


def test_an_increase_by_eight_defers_a_sixth_of_the_tokens_once_and_is_settled_two_steps_later(up_and_down):
    up = up_and_down[0]
    assert up["bias"] - up["stable_level"] == pytest.approx(-0.17, abs=0.05)
    assert up["settled_after_steps"] <= 2
    assert up["series"][1]["bias"] > up["stable_level"]


def test_a_decrease_by_eight_trains_on_the_deferred_ones_and_is_settled_two_steps_later(up_and_down):
    down = up_and_down[1]
    assert down["bias"] - down["stable_level"] == pytest.approx(0.15, abs=0.05)
    assert 1 <= down["settled_after_steps"] <= 2


def test_what_an_increase_defers_the_decrease_gives_back(up_and_down):
    up, down = (found["sum"]["bias"] for found in up_and_down)
    assert up < -0.08
    assert down > 0.08
    assert up + down == pytest.approx(0.0, abs=0.03)


def test_where_prompts_swap_places_the_bias_is_large_and_within_epsilon_plus_eta():
    steps = (10, 20, 30, 40, 50)
    found = drifting("churn", [sky_t1(seed, 8) for seed in range(5)], steps, steps)
    biases = np.array([found["bias"], *(interval["bias"] for interval in found["intervals"])])
    assert found["bias"] < -TOLERANCE
    assert (abs(biases) <= np.array(found["bound"])).all()
    assert found["epsilon"][1] > 10 * found["eta"][1]
