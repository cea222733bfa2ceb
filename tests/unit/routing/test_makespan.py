"""The exact makespan model (paper 2.1, Appendix D) against simulations that count every token or every event."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.makespan import (
    completion_times,
    cutoff_time,
    pool_end,
    pool_times,
    replica_time,
    replica_time_by_intervals,
    round_robin,
    step_time,
    tokens_at,
)
from tailsieve_rl.routing.plan import GroupTask, Pool
from tailsieve_rl.routing.policies import TwoPool
from tailsieve_rl.routing.selection import select

MOST = 24
counted = settings(max_examples=150, deadline=None)
requests = st.lists(st.integers(1, 40), min_size=1, max_size=12)


@st.composite
def rising_taus(draw: st.DrawFn) -> np.ndarray:
    """tau(0) = 0 and any positive, non-decreasing tau up to b = MOST."""
    steps = draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0]), min_size=MOST - 1, max_size=MOST - 1))
    return np.concatenate([[0.0], np.cumsum([draw(st.sampled_from([0.5, 1.0, 3.0])), *steps])])


def token_by_token(lengths, tau):
    """Appendix D: at position x run the b(x) requests that are at least x long; a token takes tau(b(x))."""
    time, finished = 0.0, np.zeros(len(lengths))
    for x in range(1, max(lengths) + 1):
        time += tau[sum(length >= x for length in lengths)]
        finished[[i for i, length in enumerate(lengths) if length == x]] = time
    return time, finished


@counted
@given(requests, rising_taus())
def test_both_formulas_of_the_paper_give_the_time_that_counting_every_token_gives(lengths, tau):
    time, finished = token_by_token(lengths, tau)
    assert replica_time(lengths, tau) == pytest.approx(time)
    assert replica_time_by_intervals(lengths, tau) == pytest.approx(time)
    assert completion_times(lengths, tau) == pytest.approx(finished)


@counted
@given(requests, st.lists(st.floats(0.1, 9.0), min_size=MOST, max_size=MOST))
def test_the_formulas_agree_even_where_a_measured_tau_falls(lengths, taus):
    tau = np.array([0.0, *taus])
    assert replica_time(lengths, tau) == pytest.approx(replica_time_by_intervals(lengths, tau))
    assert completion_times(lengths, tau).max() == pytest.approx(replica_time(lengths, tau))


@counted
@given(requests, rising_taus(), st.randoms(use_true_random=False))
def test_the_order_of_requests_does_not_matter(lengths, tau, rng):
    order = rng.sample(range(len(lengths)), len(lengths))
    shuffled = np.array(lengths)[order]
    assert replica_time(shuffled, tau) == replica_time(lengths, tau)
    assert replica_time_by_intervals(shuffled, tau) == replica_time_by_intervals(lengths, tau)
    assert completion_times(shuffled, tau) == pytest.approx(completion_times(lengths, tau)[order])


@counted
@given(requests, rising_taus(), st.data())
def test_a_longer_response_never_makes_any_response_finish_sooner(lengths, tau, data):
    longer = list(lengths)
    longer[data.draw(st.integers(0, len(lengths) - 1))] += data.draw(st.integers(1, 30))
    assert replica_time(longer, tau) >= replica_time(lengths, tau) - 1e-9
    assert (completion_times(longer, tau) >= completion_times(lengths, tau) - 1e-9).all()


@counted
@given(requests, rising_taus(), st.integers(1, 40))
def test_one_more_request_costs_its_length_times_the_rise_of_tau_at_its_rank(lengths, tau, length):
    longer = sum(other > length for other in lengths)
    shorter = sorted((other for other in lengths if other <= length), reverse=True)
    ranks = range(longer + 1, longer + 1 + len(shorter))
    pushed = sum(other * (tau[c + 1] - 2 * tau[c] + tau[c - 1]) for c, other in zip(ranks, shorter, strict=True))
    marginal = length * (tau[longer + 1] - tau[longer])
    assert replica_time([*lengths, length], tau) - replica_time(lengths, tau) == pytest.approx(marginal + pushed)


@counted
@given(st.lists(requests, min_size=1, max_size=5), rising_taus())
def test_replicas_padded_with_zeros_are_evaluated_together(replicas, tau):
    padded = np.zeros((len(replicas), 30))
    for row, lengths in zip(padded, replicas, strict=True):
        row[1 : len(lengths) + 1] = lengths
    assert replica_time(padded, tau) == pytest.approx([replica_time(x, tau) for x in replicas])
    assert replica_time_by_intervals(padded, tau) == pytest.approx([replica_time(x, tau) for x in replicas])
    finished = completion_times(padded, tau)
    for row, lengths in zip(finished, replicas, strict=True):
        assert row[1 : len(lengths) + 1] == pytest.approx(completion_times(lengths, tau))
        assert row[0] == 0 and (row[len(lengths) + 1 :] == 0).all()


def test_a_replica_with_more_requests_than_tau_knows_is_refused_with_both_numbers():
    for function in (replica_time, replica_time_by_intervals, completion_times):
        with pytest.raises(ValueError, match="runs 3 requests at once, tau is known up to b = 2"):
            function([5, 0, 5, 5], [0.0, 1.0, 1.5])
    with pytest.raises(ValueError, match="lengths must be"):
        replica_time([5, -1], [0.0, 1.0, 1.5])
    assert replica_time([], [0.0, 1.0]) == 0


@counted
@given(requests, rising_taus())
def test_at_its_completion_time_a_request_has_its_length_and_never_more(lengths, tau):
    finished = completion_times(lengths, tau)
    for length, at_s in zip(lengths, finished, strict=True):
        assert tokens_at(lengths, tau, at_s) == pytest.approx(length)
    assert tokens_at(lengths, tau, 0.0) == 0
    assert tokens_at(lengths, tau, finished.max() + 1) == pytest.approx(max(lengths))
    first = min(lengths)
    assert tokens_at(lengths, tau, first * tau[len(lengths)] / 2) == pytest.approx(first / 2)


@counted
@given(st.lists(st.integers(1, 9).map(float), min_size=1, max_size=9), st.data())
def test_the_cutoff_falls_when_the_selection_says(times, data):
    needed = data.draw(st.integers(1, len(times)))
    named = {f"p{i}": t for i, t in enumerate(times)}
    assert cutoff_time(times, needed) == select(named, needed).cutoff_s
    assert cutoff_time([times, times], 0).tolist() == [0.0, 0.0]


def test_a_cutoff_beyond_the_groups_of_a_pool_is_refused():
    with pytest.raises(ValueError, match="needs 3 groups of 2"):
        cutoff_time([1.0, 2.0], 3)


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 6), st.sampled_from(["request", "group"]))
def test_round_robin_places_responses_as_the_policies_do(groups, responses, replicas, dispatch):
    pool, policy = [str(i) for i in range(replicas)], TwoPool(Fixed(Allocation(1, 1)), dispatch)
    places = round_robin(groups, responses, replicas, by_group=dispatch == "group")
    tasks = [GroupTask("p", 1, False, Pool.BULK, i) for i in range(groups)]
    placed = [[policy.place(task, session, responses, pool, {}) for session in range(responses)] for task in tasks]
    assert placed == places.astype(str).tolist()


@counted
@given(st.data(), rising_taus(), st.integers(1, 4), st.booleans())
def test_a_pools_groups_finish_when_their_replicas_say_and_it_ends_with_the_last(data, tau, replicas, by_group):
    groups, responses = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    count = groups * responses
    lengths = np.array(data.draw(st.lists(st.integers(1, 40), min_size=count, max_size=count)))
    places = round_robin(groups, responses, replicas, by_group).ravel()
    finished = np.empty(count)
    for replica in range(replicas):
        finished[places == replica] = completion_times(lengths[places == replica], tau)
    pool = lengths.reshape(groups, responses)
    expected = finished.reshape(groups, responses).max(axis=1)
    times = pool_times(pool, replicas, tau, by_group)
    assert times == pytest.approx(expected)
    assert pool_end(pool, replicas, tau, by_group) == times.max()


@counted
@given(st.data(), st.lists(rising_taus(), min_size=3, max_size=3))
def test_a_step_with_its_cutoff_takes_as_long_as_playing_its_events_one_by_one(data, taus):
    groups, responses = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 3))
    cells = groups * responses
    lengths = np.reshape(data.draw(st.lists(st.integers(1, 30), min_size=cells, max_size=cells)), (groups, responses))
    places = np.reshape(data.draw(st.lists(st.integers(0, 2), min_size=cells, max_size=cells)), (groups, responses))
    q = data.draw(st.integers(0, groups - 1))
    needed = data.draw(st.integers(0, groups - q))
    tail = np.arange(groups) < q
    tail_s, cutoff_s = event_by_event(lengths, places, tail, needed, taus)
    result = step_time(np.stack([lengths, lengths]), places, tail, needed, np.array(taus))
    assert result.tail_s == pytest.approx([tail_s] * 2)
    assert result.cutoff_s == pytest.approx([cutoff_s] * 2)
    assert result.step_s == pytest.approx([max(tail_s, cutoff_s)] * 2)


def event_by_event(lengths, places, tail, needed, taus):
    """Every request has its own progress; whatever the cutoff aborts stops at once."""
    left = {(g, i): float(n) for (g, i), n in np.ndenumerate(lengths)}
    now, tail_s, cutoff_s = 0.0, 0.0, None
    while True:
        whole = [g for g in range(len(lengths)) if not any(key[0] == g for key in left)]
        if cutoff_s is None and sum(not tail[g] for g in whole) >= needed:
            cutoff_s = now
            left = {key: tokens for key, tokens in left.items() if tail[key[0]]}
        if not left:
            return tail_s, cutoff_s
        running = [sum(places[key] == r for key in left) for r in range(3)]
        pace = {key: taus[places[key]][running[places[key]]] for key in left}
        wait = min(left[key] * pace[key] for key in left)
        now += wait
        left = {key: tokens - wait / pace[key] for key, tokens in left.items()}
        done = {key for key, tokens in left.items() if tokens <= 1e-9}
        tail_s = now if any(tail[g] for g, _ in done) else tail_s
        left = {key: tokens for key, tokens in left.items() if key not in done}


def test_isolating_the_longest_group_beats_uniform_routing_when_tau_rises():
    """The paper's point (2.1): one long group among many short ones, alone on a replica of its own."""
    lengths = np.full((16, 4), 100)
    lengths[3] = 1000
    tau = np.concatenate([[0.0], 0.01 * (1 + np.arange(1, 65) / 8)])
    uniform = step_time(lengths, round_robin(16, 4, 2, by_group=True), np.zeros(16, bool), 16, tau)
    tail = np.arange(16) == 3
    isolated = step_time(lengths, np.where(tail, 0, 1)[:, None] + np.zeros((16, 4), int), tail, 15, tau)
    assert isolated.step_s < 0.9 * uniform.step_s < inf
