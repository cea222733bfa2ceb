"""Drifting workloads and the paper's tail strengths (A.5)."""

import numpy as np
import pytest

from tailsieve_rl.simulation.workloads import math_growing, math_shrinking, math_swinging, math_workload, tail_strength
from tailsieve_rl.simulation.workloads.drift import Drift, Drifting, constant, in_turn, slowly
from tailsieve_rl.simulation.workloads.tail_strength import RATIOS, real_trace, stretch, transform


def first_attempts(workload, groups, step=0):
    return workload.lengths(np.arange(groups), np.ones(groups, np.int64), step)


@pytest.mark.parametrize(
    ("name", "median", "p90"), [("weak", 1160, 1740), ("real", 1160, 4115), ("strong", 1160, 6960)]
)
def test_a_transformed_trace_has_exactly_the_median_and_p90_of_table_a3(name, median, p90):
    lengths = transform(real_trace(seed=1), RATIOS[name])
    assert np.percentile(lengths, [50, 90]).tolist() == [median, p90]


def test_the_maxima_are_those_of_the_formula_from_which_table_a3_is_off_by_a_few_tokens():
    # M + s_r (11,800 - M) with s_r = 580 / 2955 and 5800 / 2955, rounded. The table prints 3,206 and 22,094.
    trace = real_trace(seed=0)
    assert [transform(trace, r).max() for r in (1.5, 6.0)] == [3248, 22_044]
    assert round(1160 + 580 / 2955 * 10_640) == 3248 and round(1160 + 5800 / 2955 * 10_640) == 22_044
    assert transform(trace, 1.5).max() == pytest.approx(3206, rel=0.014)
    assert transform(trace, 6.0).max() == pytest.approx(22_094, rel=0.003)


@pytest.mark.parametrize("ratio", [1.5, 6.0])
def test_the_transform_keeps_the_lower_half_and_the_order(ratio):
    trace = real_trace(seed=0)
    lengths = transform(trace, ratio)
    low = trace <= np.median(trace)
    assert (lengths[low] == trace[low]).all()
    assert (np.diff(lengths.ravel()[np.argsort(trace.ravel(), kind="stable")]) >= 0).all()
    assert (lengths[~low] > trace[~low]).all() if ratio == 6.0 else (lengths[~low] < trace[~low]).all()


def test_the_real_ratio_leaves_a_trace_as_it_is():
    trace = real_trace(seed=2)
    assert (transform(trace, 4115 / 1160) == trace).all()


@pytest.mark.parametrize(("groups", "responses"), [(64, 8), (100, 1), (5, 4), (33, 7)])
def test_a_real_trace_of_any_size_has_the_statistics_of_table_a3(groups, responses):
    trace = real_trace(0, groups, responses)
    assert trace.shape == (groups, responses)
    assert np.percentile(trace, [50, 90, 100]).tolist() == [1160, 4115, 11_800]
    assert trace.min() >= 1


def test_traces_of_different_seeds_differ_in_order_and_their_prompts_matter():
    one, other = real_trace(0), real_trace(1)
    assert (np.sort(one.ravel()) == np.sort(other.ravel())).all() and (one != other).any()
    assert one.mean(axis=1).std() > 2 * one.std() / np.sqrt(8)


def test_endless_tails_differ_above_the_median_only_and_are_not_cut():
    weak, real, strong = (first_attempts(tail_strength(name, 0), 4000) for name in RATIOS)
    low = real <= 1160
    assert (weak[low] == real[low]).all() and (strong[low] == real[low]).all()
    assert (weak[~low] < real[~low]).all() and (strong[~low] > real[~low]).all()
    ratios = [np.percentile(lengths, 90) / np.percentile(lengths, 50) for lengths in (weak, real, strong)]
    assert ratios == pytest.approx([1.5, 3.547, 6.0], rel=0.05)
    assert [lengths.max() for lengths in (weak, real, strong)] == [3248, 11_800, 22_044]


def test_unknown_tails_and_ratios_that_are_none_are_refused():
    with pytest.raises(ValueError, match="no tail 'huge', only weak, real, strong"):
        tail_strength("huge", 0)
    with pytest.raises(ValueError, match="ratio = 1"):
        stretch(1)
    with pytest.raises(ValueError, match="too few"):
        real_trace(0, groups=2)


def test_a_drifting_workload_is_stretched_above_the_pivot_scaled_and_capped():
    base = math_workload(0, evolving=False)
    given = first_attempts(base, 2000)
    lengths = first_attempts(Drifting(base, constant(Drift(scale=2.0, stretch=3.0)), 1000, "twice"), 2000)
    stretched = 2 * np.where(given > 1000, 1000 + 3 * (given - 1000), given)
    assert (lengths == np.where(given == 16_384, 16_384, np.minimum(stretched, 16_384))).all()
    assert (stretched > 16_384).any(), "some had to be capped"


def test_a_truncated_response_stays_truncated_when_lengths_shrink():
    base = math_workload(0, evolving=False)
    given = first_attempts(base, 2000)
    lengths = first_attempts(Drifting(base, constant(Drift(scale=0.5)), 1000, "half"), 2000)
    assert (lengths[given == 16_384] == 16_384).all()
    assert lengths[given < 16_384].max() < 8192


def test_a_slow_schedule_moves_monotonically_and_then_stays():
    schedule = slowly(Drift(scale=1.0), Drift(scale=2.0, stretch=0.5), 100)
    scales = [schedule(step).scale for step in range(0, 201, 10)]
    assert scales[0] == 1.0 and scales[5] == pytest.approx(1.5) and scales[10:] == [2.0] * 11
    assert (np.diff(scales) >= 0).all()
    assert schedule(100).stretch == 0.5


def test_drifts_in_turn_change_abruptly_and_begin_again():
    schedule = in_turn([Drift(), Drift(stretch=2.0)], 3)
    assert [schedule(step).stretch for step in range(8)] == [1, 1, 1, 2, 2, 2, 1, 1]


def test_the_math_workload_grows_shrinks_and_swings():
    def mean(workload, step):
        return np.minimum(first_attempts(workload, 3000, step), 16_383).mean()

    assert mean(math_growing(0), 200) > 1.5 * mean(math_growing(0), 0)
    assert mean(math_shrinking(0), 200) < 0.85 * mean(math_shrinking(0), 0)
    real, weak, again, strong = (mean(math_swinging(0), step) for step in (0, 40, 80, 120))
    assert weak < real == again < strong
    assert math_swinging(0).name == "math_swinging"


@pytest.mark.parametrize("bad", [{"scale": 0.0}, {"stretch": -1.0}])
def test_a_drift_that_would_make_lengths_vanish_is_refused(bad):
    with pytest.raises(ValueError, match="must be above 0"):
        Drift(**bad)


def test_schedules_need_steps():
    for make in (lambda: slowly(Drift(), Drift(), 0), lambda: in_turn([Drift()], 0)):
        with pytest.raises(ValueError, match="steps = 0"):
            make()
