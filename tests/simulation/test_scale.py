"""Decisions stay short as the system grows, and go on gaining."""

import pytest

from tailsieve_rl.simulation.experiments.scale import at_size


@pytest.fixture(scope="module")
def found():
    return {(row["groups"], row["controller"]): row for n in (64, 512) for row in at_size(n, n // 8, range(1), 12, 4)}


@pytest.mark.parametrize("name", ["hierarchical", "joint"])
def test_a_decision_for_eight_times_the_groups_takes_at_most_twelve_times_as_long(found, name):
    assert found[512, name]["decision_cpu_s"] < 12 * found[64, name]["decision_cpu_s"]


def test_the_joint_controller_decides_for_64_groups_within_a_tenth_of_a_second(found):
    assert found[64, "joint"]["decision_cpu_s"] < 0.1


@pytest.mark.parametrize("name", ["hierarchical", "joint"])
def test_every_decision_of_a_run_is_timed(found, name):
    assert found[64, name]["decisions"] == 17


def test_it_gains_on_a_large_system_as_well(found):
    assert found[512, "joint"]["speedup"] > 1.05
