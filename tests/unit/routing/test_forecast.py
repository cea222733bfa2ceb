"""The predictive model: what it draws is distributed like the past, and its times are those of the executor's rules."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.forecast import Draws, Forecast, PoolTaus, draw, same_tau
from tailsieve_rl.routing.makespan import round_robin, step_time

TAU = np.concatenate([[0.0], 0.005 * (1 + np.arange(1, 600) / 32)])


def past_groups(groups: int, prompt: float, sampling: float, seed: int = 0, n: int = 8) -> np.ndarray:
    """Lognormal lengths with a prompt and a sampling effect, cut at 4,000 tokens."""
    rng = np.random.default_rng(seed)
    scores = prompt * rng.standard_normal((groups, 1)) + sampling * rng.standard_normal((groups, n))
    return np.minimum(np.exp(6.5 + scores), 4000).astype(np.int64)


def within_share(lengths: np.ndarray) -> float:
    """Variance within groups as a share of all, of the logarithm."""
    logs = np.log(lengths.reshape(-1, lengths.shape[-1]))
    return float(logs.var(axis=1, ddof=1).mean() / logs.var())


def test_drawn_lengths_have_the_quantiles_of_the_past() -> None:
    past = past_groups(1280, 0.8, 0.5)
    drawn = draw(past, 64, 64, np.random.default_rng(1))
    shares = (0.1, 0.5, 0.9, 0.99)
    for lengths in (drawn.first, drawn.again):
        assert np.quantile(lengths, shares) == pytest.approx(np.quantile(past, shares), rel=0.06)
        assert lengths.min() >= past.min() and lengths.max() <= past.max()


@pytest.mark.parametrize(("prompt", "sampling"), [(0.8, 0.5), (0.3, 0.8), (0.9, 0.1)])
def test_drawn_groups_vary_within_as_much_as_past_groups(prompt: float, sampling: float) -> None:
    past = past_groups(1280, prompt, sampling)
    drawn = draw(past, 64, 32, np.random.default_rng(1))
    assert within_share(drawn.first) == pytest.approx(within_share(past), abs=0.05)


def test_both_generations_of_a_prompt_are_as_alike_as_two_real_ones() -> None:
    """Resampling the same responses twice would make them more alike: 0.9 here."""
    twice = past_groups(4000, 0.8, 0.8, n=16)
    real = np.corrcoef(np.log(twice[:, :8]).max(axis=1), np.log(twice[:, 8:]).max(axis=1))[0, 1]
    drawn = draw(twice[:1280, :8], 64, 60, np.random.default_rng(1))
    first, again = (np.log(x.reshape(-1, 8)).max(axis=1) for x in (drawn.first, drawn.again))
    assert np.corrcoef(first, again)[0, 1] == pytest.approx(real, abs=0.05)


def test_groups_of_one_are_taken_to_be_as_alike_again_as_the_paper_measured() -> None:
    """One response shows nothing of it. Taken as not alike at all, no prompt would be worth isolating."""
    drawn = draw(past_groups(4000, 0.8, 0.6, n=1), 64, 60, np.random.default_rng(1))
    first, again = (np.log(x).reshape(-1) for x in (drawn.first, drawn.again))
    assert np.corrcoef(first, again)[0, 1] == pytest.approx(0.65, abs=0.05)


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    past = past_groups(256, 0.8, 0.5)
    one, same, other = (draw(past, 64, 4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.first, same.first) and np.array_equal(one.again, same.again)
    assert not np.array_equal(one.first, other.first)


@pytest.mark.parametrize("past", [np.full((3, 8), 100), np.full((1, 8), 7), past_groups(2, 0.8, 0.5)])
def test_few_or_equal_groups_can_be_drawn_from(past: np.ndarray) -> None:
    drawn = draw(past, 16, 2, np.random.default_rng(0))
    assert drawn.first.shape == (2, 16, 8)
    assert drawn.first.min() >= past.min() and drawn.first.max() <= past.max()


@pytest.mark.parametrize("at", [Allocation(3, 1), Allocation(5, 2), Allocation(8, 3)])
def test_a_forecast_is_the_makespan_of_the_step_that_it_plays_over(at: Allocation) -> None:
    lengths, again = past_groups(16, 0.8, 0.5, seed=1), past_groups(16, 0.8, 0.5, seed=2)
    forecast = Forecast(Draws(lengths[None], again[None]), replicas=4, tau=same_tau(TAU))
    bulk = round_robin(16, 8, 4 - at.m)
    fresh = step_time(lengths, bulk, np.zeros(16, bool), 16 - at.q, TAU)
    assert forecast.bulk_s(at)[0] == pytest.approx(float(fresh.cutoff_s))
    order = np.argsort(
        [float(step_time(lengths, bulk, np.arange(16) == g, 0, TAU).tail_s) for g in range(16)], kind="stable"
    )
    tail = step_time(again[order[16 - at.q :]], round_robin(at.q, 8, at.m), np.ones(at.q, bool), 0, TAU)
    assert forecast.tail_s(at)[0] == pytest.approx(float(tail.tail_s), rel=0.2)
    assert forecast.step_s(at) == pytest.approx(max(forecast.bulk_s(at)[0], forecast.tail_s(at)[0]))


def test_without_a_tail_pool_the_step_ends_with_its_last_group() -> None:
    lengths = past_groups(16, 0.8, 0.5)
    forecast = Forecast(Draws(lengths[None], lengths[None]), replicas=4, tau=same_tau(TAU))
    whole = step_time(lengths, round_robin(16, 8, 4), np.zeros(16, bool), 16, TAU)
    assert forecast.step_s(UNIFORM) == forecast.step_s(Allocation(4, 0)) == pytest.approx(float(whole.cutoff_s))


def test_the_tail_pools_own_decode_model_counts_for_the_tail_only() -> None:
    lengths = past_groups(16, 0.8, 0.5)
    draws, at = Draws(lengths[None], lengths[None]), Allocation(4, 2)
    plain, fast = Forecast(draws, 4, same_tau(TAU)), Forecast(draws, 4, PoolTaus(TAU / 2, TAU, TAU))
    assert fast.tail_s(at) == pytest.approx(plain.tail_s(at) / 2)
    assert fast.bulk_s(at) == pytest.approx(plain.bulk_s(at))
