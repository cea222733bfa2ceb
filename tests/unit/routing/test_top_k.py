"""Top-k tail isolation (paper 2.2) against splitting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.routing.oracle import best_top_k, fixed_share_time, top_k_times

lengths_lists = st.lists(st.integers(1, 40), max_size=20)
taus = st.lists(st.floats(0.1, 9.0), min_size=20, max_size=20).map(lambda rest: [0.0, *rest])


def times_by_hand(lengths, tau):
    longest = sorted(lengths, reverse=True)
    return [max(float(replica_time(part, tau)) for part in (longest[:k], longest[k:])) for k in range(len(lengths) + 1)]


@settings(deadline=None)
@given(lengths_lists, taus)
def test_the_time_of_every_k_is_that_of_the_slower_of_the_k_longest_and_the_others(lengths, tau):
    assert top_k_times(lengths, tau) == pytest.approx(times_by_hand(lengths, tau))


@settings(deadline=None)
@given(lengths_lists, taus)
def test_the_best_k_is_the_smallest_one_that_reaches_the_least_time(lengths, tau):
    times = top_k_times(lengths, tau).tolist()
    best = best_top_k(lengths, tau)
    assert (best.time_s, best.k) == (min(times), times.index(min(times)))


def test_isolating_nothing_or_everything_is_one_replica_that_runs_alone():
    lengths, tau = [7, 3, 9, 1], [0.0, 1.0, 1.5, 2.0, 2.5]
    times = top_k_times(lengths, tau)
    assert times[0] == times[-1] == replica_time(lengths, tau)
    assert best_top_k([], [0.0]) == best_top_k([], [0.0, 1.0])
    assert (best_top_k([], [0.0]).time_s, best_top_k([], [0.0]).k) == (0.0, 0)


@pytest.mark.parametrize(("share", "k"), [(0.0, 0), (0.1, 2), (0.12, 2), (0.14, 3), (1.0, 20)])
def test_a_fixed_share_isolates_the_whole_number_of_requests_that_is_nearest(share, k):
    lengths, tau = [2**i for i in range(20)], np.sqrt(np.arange(21))
    assert fixed_share_time(lengths, tau, share) == pytest.approx(times_by_hand(lengths, tau)[k])
    assert len(set(times_by_hand(lengths, tau)[:4])) == 4


def test_inputs_that_cannot_be_split_are_refused():
    with pytest.raises(ValueError, match=r"share = 1\.5 of the requests"):
        fixed_share_time([1, 2], [0.0, 1.0, 1.5], 1.5)
    with pytest.raises(ValueError, match=r"must be a list of requests, not of shape \(1, 2\)"):
        top_k_times([[1, 2]], [0.0, 1.0, 1.5])
    with pytest.raises(ValueError, match="runs 3 requests at once, tau is known up to b = 2"):
        best_top_k([1, 2, 3], [0.0, 1.0, 1.5])
