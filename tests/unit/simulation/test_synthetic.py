"""Synthetic workloads: common random numbers, the paper's statistics, speed."""

import numpy as np
import pytest

from tailsieve_rl.simulation.analysis import LengthAnalysis, analyze_lengths
from tailsieve_rl.simulation.workloads import (
    WORKLOADS,
    Synthetic,
    Weights,
    code_workload,
    kodcode_like,
    light_tail,
    math_workload,
    uniform_lengths,
)
from tailsieve_rl.simulation.workloads.length_curve import LengthCurve

from .tables import table


def first_attempts(workload, groups, step=0):
    """Lengths of the first groups of a stream, all fresh."""
    return workload.lengths(np.arange(groups), np.ones(groups, np.int64), step)


def mean_analysis(make, seeds=60) -> tuple[dict[str, float], list[LengthAnalysis]]:
    """Appendix B's experiment on some seeds: 64 prompts, 30 checkpoints ten steps apart, 8 samples; mean shares."""
    found = []
    for seed in range(seeds):
        workload, prompts = make(seed), np.arange(64)
        # An attempt for each checkpoint: samples are drawn anew, as in the paper.
        cells = [workload.lengths(prompts, np.full(64, s + 1), 10 * s) for s in range(30)]
        found.append(analyze_lengths(table(np.stack(cells, axis=1))))
    shares = [analysis.variance.sums_of_squares for analysis in found]
    return {name: 100 * float(np.mean([share[name] for share in shares])) for name in shares[0]}, found


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_group_has_the_same_lengths_whatever_else_is_asked_for(name):
    prompts, attempts = np.array([3, 700, 64, 1 << 40]), np.array([1, 1, 2, 1])
    whole = WORKLOADS[name](5, 8).lengths(prompts, attempts, 7)
    other = WORKLOADS[name](5, 8)
    first_attempts(other, 2000, step=3)
    for i in reversed(range(4)):
        assert (other.lengths(prompts[i : i + 1], attempts[i : i + 1], 7) == whole[i]).all()
    order = np.array([2, 0, 3, 1])
    assert (other.lengths(prompts[order], attempts[order], 7) == whole[order]).all()


@pytest.mark.parametrize("name", WORKLOADS)
def test_lengths_are_whole_tokens_from_1_to_the_cap_for_each_response(name):
    workload = WORKLOADS[name](0, 5)
    assert workload.responses == 5
    for step in (0, 55, 150, 1000):
        lengths = first_attempts(workload, 300, step)
        assert lengths.shape == (300, 5) and lengths.dtype == np.int64
        assert lengths.min() >= 1 and lengths.max() <= workload.cap


@pytest.mark.parametrize("name", WORKLOADS)
def test_seeds_attempts_and_prompts_differ(name):
    workload = WORKLOADS[name](0, 8)
    here = first_attempts(workload, 100)
    assert (here != first_attempts(WORKLOADS[name](1, 8), 100)).mean() > 0.8
    assert (here != workload.lengths(np.arange(100), np.full(100, 2), 0)).mean() > 0.8
    assert (here != workload.lengths(np.arange(1000, 1100), np.ones(100, int), 0)).mean() > 0.8


@pytest.mark.parametrize(
    ("make", "quantiles", "truncated"),
    [
        (math_workload, {50: 1160, 90: 4115}, 0.03),  # Table A.3, section 4.1
        (code_workload, {50: 1098, 90: 3436}, 0.001),  # half of the measured coding prompts, section 4.1
    ],
)
def test_the_papers_workloads_have_the_papers_quantiles_and_share_at_the_cap(make, quantiles, truncated):
    lengths = first_attempts(make(0), 60_000)
    below = lengths[lengths < 16_384]
    for percent, tokens in quantiles.items():
        assert np.percentile(below, percent) == pytest.approx(tokens, rel=0.02)
    assert (lengths == 16_384).mean() == pytest.approx(truncated, rel=0.15)
    assert below.max() < 13_000, "what stops by itself stops well before the cap, as in Table A.3"


@pytest.mark.parametrize("make", [math_workload, code_workload])
def test_variance_divides_as_in_appendix_b_and_long_prompts_stay_long(make):
    shares, found = mean_analysis(make)
    assert shares["prompt"] == pytest.approx(64.8, abs=1.5)
    assert shares["sampling"] == pytest.approx(26.1, abs=1.5)
    assert shares["interaction"] == pytest.approx(6.9, abs=0.8)
    assert shares["checkpoint"] == pytest.approx(2.2, abs=0.5)
    adjacent = np.mean([ranking.auc for analysis in found for ranking in analysis.adjacent])
    later = np.mean([ranking.auc for analysis in found for ranking in analysis.first_to_later])
    assert 0.957 < adjacent < 0.988, "Figure B.1: 0.957 to 0.985"
    assert 0.952 < later < adjacent, "Figure B.1: 0.952 to 0.985"


def test_the_stand_in_for_the_coding_trace_has_its_quantiles_and_variance_components():
    lengths = first_attempts(kodcode_like(0, responses=3), 30_000)
    for percent, tokens in {50: 2195, 90: 6871, 99: 12_459}.items():
        assert np.percentile(lengths, percent) == pytest.approx(tokens, rel=0.03)
    assert lengths.max() == 16_663
    variance = analyze_lengths(table(lengths[:, None, :])).variance
    assert variance.components["prompt"] == pytest.approx(0.77, abs=0.015)
    assert variance.sums_of_squares["prompt"] == pytest.approx(0.85, abs=0.015)


def test_without_a_tail_lengths_hardly_differ_and_a_light_tail_is_the_papers_weak_one():
    flat = first_attempts(uniform_lengths(0), 5000)
    assert flat.min() > 0.85 * np.median(flat) and flat.max() < 1.2 * np.median(flat)
    light = first_attempts(light_tail(0), 20_000)
    assert np.percentile(light, 90) / np.median(light) == pytest.approx(1.5, abs=0.02)


def test_lengths_drift_slowly_under_training_and_not_at_all_under_a_frozen_policy():
    trained, frozen = math_workload(0), math_workload(0, evolving=False)
    assert (first_attempts(frozen, 200, 0) == first_attempts(frozen, 200, 90)).all()
    means = [first_attempts(trained, 2000, step).mean() for step in range(0, 400, 10)]
    steps = np.abs(np.diff(means)) / means[:-1]
    assert steps.max() < 0.12, "neighbouring checkpoints are alike"
    assert max(means) > 1.3 * min(means), "distant ones are not"


def test_a_curve_goes_through_its_quantiles_of_the_responses_that_stop():
    curve = LengthCurve(((0.5, 100.0), (0.9, 400.0)), cap=1000, truncated=0.2)
    assert curve.at([0.4, 0.72, 0.81]).tolist() == [100, 400, 1000]
    assert LengthCurve(((0.5, 100.0), (0.9, 400.0)), cap=1000).at([0.5, 0.9, 0.1]).tolist() == [100, 400, 25]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"quantiles": ((0.5, 100.0),)}, "must ascend"),
        ({"quantiles": ((0.5, 100.0), (0.9, 90.0))}, "must ascend"),
        ({"quantiles": ((0.0, 10.0), (0.9, 90.0))}, "probabilities between 0 and 1"),
        ({"cap": 300}, "must lie between 1 and the cap of 300"),
        ({"truncated": 1.0}, r"truncated = 1\.0"),
        ({"longest": 390.0}, "must lie between the last quantile and the cap"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        LengthCurve(**{"quantiles": ((0.5, 100.0), (0.9, 400.0)), "cap": 1000, **changes})


def test_shares_that_cannot_be_and_positions_before_the_stream_are_refused():
    with pytest.raises(ValueError, match="sum to 1 at most"):
        Weights(sampling=0.7, interaction=0.4)
    with pytest.raises(ValueError, match="responses = 0"):
        math_workload(0, responses=0)
    with pytest.raises(ValueError, match="positions of 0 or more, not -1"):
        math_workload(0).lengths(np.array([-1]), np.array([1]), 0)


def test_the_prompt_alone_decides_when_sampling_weighs_nothing():
    curve = LengthCurve(((0.5, 1000.0), (0.9, 4000.0)), cap=20_000)
    lengths = first_attempts(Synthetic("sure", 0, curve, Weights(sampling=0.0)), 50)
    assert (lengths == lengths[:, :1]).all() and len(np.unique(lengths[:, 0])) > 40
