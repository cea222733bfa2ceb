"""The inner loop: rates, the balance point, damped and bounded moves (paper 3.2, C.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.routing.control.inner import Rates, balance_point, measured_rates, move_towards, smoothed

from .steps import outcome_of

rates = st.builds(Rates, st.floats(0.01, 100), st.floats(0.01, 100))


@given(rates, st.integers(2, 512))
def test_at_the_balance_point_both_pools_need_the_same_time(rates: Rates, groups: int) -> None:
    q = balance_point(rates, groups)
    assert 0 < q < groups
    assert q / rates.tail == pytest.approx((groups - q) / rates.bulk)


def test_rates_are_groups_over_seconds_of_each_pool() -> None:
    outcome = outcome_of(q=2, fresh=6, q_next=2, m=1, tail_s=4.0, bulk_s=2.0)
    assert measured_rates(outcome) == Rates(tail=0.5, bulk=2.0)


def test_a_step_without_a_tail_pool_has_no_rates() -> None:
    assert measured_rates(outcome_of(q=0, fresh=6, q_next=2, m=0, tail_s=0.0, bulk_s=2.0)) is None
    assert measured_rates(outcome_of(q=2, fresh=6, q_next=2, m=0, tail_s=1.0, bulk_s=2.0)) is None


def test_the_moving_average_begins_at_the_first_measurement_and_weighs_the_next() -> None:
    first = smoothed(None, Rates(1.0, 10.0), ema=0.25)
    assert first == Rates(1.0, 10.0)
    assert smoothed(first, Rates(5.0, 2.0), ema=0.25) == Rates(2.0, 8.0)


@given(
    q=st.integers(1, 32),
    goal=st.floats(0, 64),
    velocity=st.floats(-64, 64),
    momentum=st.floats(0, 0.99),
    max_change=st.integers(1, 8),
)
def test_a_move_is_bounded_and_stays_in_range(
    q: int, goal: float, velocity: float, momentum: float, max_change: int
) -> None:
    move = move_towards(q, goal, velocity, momentum, max_change, largest=32)
    assert abs(move.q - q) <= max_change and 1 <= move.q <= 32 and 1 <= move.target <= 32


def test_momentum_damps_a_lone_jump_and_carries_on_after_it() -> None:
    jump = move_towards(4, goal=12, velocity=0.0, momentum=0.5, max_change=100, largest=32)
    assert (jump.q, jump.velocity) == (8, 4.0)
    after = move_towards(8, goal=8, velocity=jump.velocity, momentum=0.5, max_change=100, largest=32)
    assert (after.q, after.velocity) == (10, 2.0)


@pytest.mark.parametrize("start", [1, 5, 32])
def test_repeated_moves_settle_at_the_goal_from_both_sides(start: int) -> None:
    q, velocity = start, 0.0
    for _ in range(60):
        move = move_towards(q, goal=7.0, velocity=velocity, momentum=0.5, max_change=2, largest=32)
        q, velocity = move.q, move.velocity
    assert abs(q - 7) <= 1
