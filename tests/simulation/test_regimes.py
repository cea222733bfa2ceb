"""Fig. D.1: fixed isolation gains between two ends, and not at all where decoding does not depend on the batch."""

import pytest

from tailsieve_rl.simulation.experiments.regimes import REGIMES, at_strength


@pytest.fixture(scope="module")
def found():
    return {name: at_strength(ratio, flat, range(4), steps=20) for name, (ratio, flat) in REGIMES.items()}


def test_the_gain_is_largest_in_the_good_regime(found):
    good = found["good"]
    assert good["ci95"][0] > 1.05
    assert all(other is good or other["speedup"] < good["speedup"] - 0.02 for other in found.values())


def test_with_too_little_tail_work_the_bulk_pool_binds_and_with_too_much_the_tail_pool_does(found):
    small, overloaded = found["tail workload too small"], found["tail route overloaded"]
    assert small["work_share"] < overloaded["work_share"]
    assert small["bulk_s"] > 1.2 * small["tail_s"]
    assert overloaded["tail_s"] > 1.2 * overloaded["bulk_s"]


def test_the_late_penalty_grows_with_the_tail(found):
    shares = [
        found[name]["penalty_s"] / found[name]["advantage_s"]
        for name in ("tail workload too small", "good", "tail route overloaded")
    ]
    assert shares == sorted(shares)


def test_where_tau_is_flat_there_is_neither_advantage_nor_penalty_nor_gain(found):
    flat = found["no low-concurrency advantage"]
    assert flat["advantage_s"] == flat["penalty_s"] == 0.0
    assert flat["speedup"] == pytest.approx(1.0, abs=0.02)
