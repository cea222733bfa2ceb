"""The outer loop: marginal capacity and its closed form, splits within a radius, the deadline (paper C.2)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.forecast import Draws, Forecast, same_tau
from tailsieve_rl.routing.control.outer import (
    Pressure,
    balanced_share,
    choose_split,
    deadline_feasible,
    marginal_capacity,
    pressures,
)

positive = st.floats(0.01, 100)
TAU = np.concatenate([[0.0], 0.005 * (1 + np.arange(1, 257) / 8)])


def heavy_tail(replicas: int = 4, tau: np.ndarray = TAU) -> Forecast:
    """Sixteen groups of four, two of them ten times as long as the others, the same in both generations."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(90, 110, (6, 16, 4))
    lengths[:, :2] *= 10
    return Forecast(Draws(lengths, lengths), replicas, same_tau(tau))


@given(positive, positive, positive, positive)
def test_the_closed_form_share_is_where_marginal_capacities_are_equal(
    gamma_tail: float, lambda_tail: float, gamma_bulk: float, lambda_bulk: float
) -> None:
    tail, bulk = Pressure(lambda_tail, gamma_tail), Pressure(lambda_bulk, gamma_bulk)
    alpha = balanced_share(tail, bulk)
    assert 0 < alpha < 1
    assert marginal_capacity(tail, alpha) == pytest.approx(marginal_capacity(bulk, 1 - alpha))


@given(gamma=positive, p=st.floats(0.01, 0.99))
def test_for_a_homogeneous_workload_the_share_of_replicas_is_that_of_groups(gamma: float, p: float) -> None:
    """lambda_tail = gamma / p and lambda_bulk = gamma / (1 - p): alpha* = p, as good as uniform routing."""
    assert balanced_share(Pressure(gamma / p, gamma), Pressure(gamma / (1 - p), gamma)) == pytest.approx(p)


def test_more_tail_replicas_than_the_balance_asks_for_means_less_marginal_capacity_there() -> None:
    tail, bulk = Pressure(2.0, 1.0), Pressure(1.0, 1.0)
    alpha = balanced_share(tail, bulk)
    for share, more_to_tail in ((alpha - 0.1, True), (alpha + 0.1, False)):
        assert (marginal_capacity(tail, share) > marginal_capacity(bulk, 1 - share)) is more_to_tail


def test_a_pool_that_does_not_mind_more_groups_has_unbounded_capacity() -> None:
    assert marginal_capacity(Pressure(0.0, 1.0), 0.5) == float("inf")
    assert marginal_capacity(Pressure(0.0, 0.0), 0.5) == 0.0


def test_where_decoding_does_not_slow_down_elasticity_is_zero() -> None:
    flat = np.concatenate([[0.0], np.full(256, 0.01)])
    tail, bulk = pressures(heavy_tail(tau=flat), Allocation(2, 2))
    assert (tail.elasticity, bulk.elasticity) == (0.0, 0.0)


def test_pressures_are_logarithmic_derivatives_of_the_forecast() -> None:
    forecast = heavy_tail()
    tail, bulk = pressures(forecast, Allocation(4, 2))
    expected = np.log(forecast.tail_s(Allocation(5, 2)).mean() / forecast.tail_s(Allocation(3, 2)).mean()) / (2 / 16)
    assert tail.cutoff == pytest.approx(expected)
    grown = np.log(forecast.bulk_s(Allocation(4, 3)).mean() / forecast.bulk_s(Allocation(4, 1)).mean())
    assert bulk.elasticity == pytest.approx(grown / np.log(3 / 1))


def test_the_best_split_within_two_replicas_is_chosen() -> None:
    forecast = heavy_tail(replicas=8)
    at = Allocation(2, 6)
    choice = choose_split(forecast, at, towards_tail=False, allowed=range(1, 8))
    feasible = [m for m in (4, 5, 6, 7) if deadline_feasible(forecast, at, m)]
    expected = min(feasible, key=lambda m: forecast.step_s(Allocation(2, m)))
    assert choice.target == Allocation(2, expected)
    assert choice.gain == pytest.approx(1 - forecast.step_s(choice.target) / forecast.step_s(at))


def test_a_split_without_room_is_not_chosen() -> None:
    choice = choose_split(heavy_tail(replicas=8), Allocation(2, 6), towards_tail=False, allowed=[6, 7])
    assert choice.target.m in (0, 6, 7)


def test_uniform_routing_is_chosen_where_no_split_is_faster() -> None:
    lengths = np.full((4, 16, 4), 100)
    even = Forecast(Draws(lengths, lengths), 4, same_tau(TAU))
    assert choose_split(even, Allocation(2, 1), towards_tail=True, allowed=[1, 2, 3]).target == UNIFORM


def test_a_replica_is_not_moved_if_the_pool_that_gets_it_gains_fewer_groups_than_the_other_loses() -> None:
    forecast = heavy_tail()
    at = Allocation(2, 1)
    deadline = forecast.step_s(at)
    for m in (2, 3):
        gained = forecast.tail_done(m, deadline, 15) - forecast.tail_done(1, deadline, 15)
        lost = forecast.bulk_done(1, deadline) - forecast.bulk_done(m, deadline)
        assert deadline_feasible(forecast, at, m) is (gained >= lost)
    assert deadline_feasible(forecast, at, 1)
