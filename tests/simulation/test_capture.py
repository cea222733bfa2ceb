"""Fig. 3: the cutoff catches the groups that will be long again."""

import pytest

from tailsieve_rl.simulation.experiments.capture import RHOS, SEVERITIES, capture

NAMES = ("math", "code")


@pytest.fixture(scope="module")
def caught():
    rows = [row for name in NAMES for rho in RHOS for row in capture(name, rho, range(4), steps=30)["rows"]]
    return {(row["workload"], row["truth"], row["severity"], row["rho"]): row for row in rows}


@pytest.mark.parametrize("name", NAMES)
def test_more_excess_candidates_catch_more_of_the_longest_groups(caught, name):
    for truth in ("regenerated", "final"):
        for severity in SEVERITIES:
            shares = [caught[name, truth, severity, rho]["capture"] for rho in RHOS]
            assert shares == sorted(shares)
            assert shares[0] < shares[-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_more_extreme_the_group_the_surer_it_is_caught(caught, name):
    for rho in RHOS:
        shares = [caught[name, "regenerated", severity, rho]["capture"] for severity in SEVERITIES]
        assert shares == sorted(shares)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_caught_beyond_the_ceiling_and_the_race_is_judged_too_well_by_its_own_lengths(caught, name):
    for rho in RHOS:
        truth, own = (caught[name, kind, 0.10, rho] for kind in ("regenerated", "final"))
        assert truth["capture"] < own["capture"] <= own["ceiling"] + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_a_quarter_of_excess_candidates_catches_nearly_all_as_in_the_paper(caught, name):
    assert caught[name, "regenerated", 0.10, 0.25]["capture"] > 0.90
    assert caught[name, "regenerated", 0.02, 0.25]["capture"] > 0.97


def test_where_prompts_swap_places_far_fewer_are_caught():
    row = next(r for r in capture("sky_t1", 0.10, range(3), steps=30)["rows"] if r["severity"] == 0.05)
    assert row["truth"] == "regenerated"
    assert row["capture"] < 0.6
