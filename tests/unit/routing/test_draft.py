"""Draft depths and what verifications of drafts yield."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.routing.draft import Acceptance, acceptance, depth_at, geometric, verified


def test_a_schedule_has_a_depth_for_each_batch_size_and_goes_on_with_its_last():
    assert [depth_at((0, 4, 2, 0), b) for b in (1, 2, 3, 50)] == [4, 2, 0, 0]
    assert depth_at(3, 50) == 3


def test_a_verification_yields_the_accepted_drafts_and_a_token_of_the_models_own():
    assert geometric(0.8, 3).tokens(0) == 1
    assert geometric(0.8, 3).tokens(3) == pytest.approx(1 + 0.8 + 0.64 + 0.512)
    assert geometric(1.0, 3).tokens(3) == 4 and geometric(0.0, 3).tokens(3) == 1


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_beyond_the_depths_seen_drafts_are_accepted_as_the_last_one_was(seen):
    assert geometric(0.7, seen).tokens(6) == pytest.approx(geometric(0.7, 6).tokens(6))
    assert Acceptance((0.9, 0.45)).tokens(4) == pytest.approx(1 + 0.9 + 0.45 + 0.225 + 0.1125)


def test_acceptance_is_counted_from_verifications_by_accepted_drafts():
    found = acceptance([(2, 3, 5), (0, 0, 10)])
    assert found.at_least == pytest.approx((18 / 20, 15 / 20))
    assert found.verifications == 20


def test_deeper_drafts_are_counted_where_as_many_were_drafted():
    found = acceptance([(10, 90), (1, 1, 2)])
    assert found.at_least == pytest.approx((93 / 104, 2 / 4))


def test_acceptance_never_rises_with_the_depth():
    """Two engines, the shallow one with the better drafts."""
    assert acceptance([(90, 10), (0, 0, 10)]).at_least == pytest.approx((20 / 110, 20 / 110))


def test_without_drafts_there_is_no_acceptance():
    assert acceptance([]) is None
    assert acceptance([(), (5,), (0, 0, 0)]) is None


@given(st.integers(0, 5000), st.integers(0, 8), st.floats(0.0, 1.0))
def test_the_verifications_of_a_response_add_up_to_its_tokens(tokens, depth, share):
    drafted, counts = verified(tokens, depth, geometric(share, 8))
    if not depth:
        assert (drafted, counts) == (0, ())
        return
    passes = sum(counts)
    assert drafted == passes * depth and len(counts) == depth + 1 and min(counts) >= 0
    assert passes + sum(i * count for i, count in enumerate(counts)) == pytest.approx(tokens, abs=depth + 2)


def test_what_verifications_count_is_the_acceptance_that_they_were_made_with():
    _, counts = verified(100_000, 4, geometric(0.6, 4))
    assert acceptance([counts]).at_least == pytest.approx(geometric(0.6, 4).at_least, abs=1e-3)
