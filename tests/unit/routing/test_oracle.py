"""The exact two-replica optimum (paper 2.1) against every split there is, and against number partitioning."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.routing.oracle import best_top_k, optimal_split, two_replicas
from tailsieve_rl.routing.oracle.relaxation import relax

MOST = 14


@st.composite
def instances(draw: st.DrawFn, least: int = 0, most: int = MOST) -> tuple[list[int], np.ndarray]:
    """Lengths with few or many ties, and tau of every shape: straight, bent, levelling off, with plateaus, falling."""
    cap = draw(st.sampled_from([2, 9, 300, 16384]))
    lengths = draw(st.lists(st.integers(0 if cap == 9 else 1, cap), min_size=least, max_size=most))
    b = np.arange(1, most + 1)
    kind = draw(st.sampled_from(["straight", "levels off", "convex", "bent", "plateaus", "any"]))
    if kind == "straight":
        rest = 1 + b / draw(st.sampled_from([1, 8, 32, 64]))
    elif kind == "levels off":
        rest = 1 + draw(st.sampled_from([1.0, 3.0])) * (1 - np.exp(-b / 16)) + b / 200
    elif kind == "convex":
        rest = 1 + (b / draw(st.sampled_from([2, 10]))) ** 2
    elif kind == "bent":
        rest = 1 + b / 8 + draw(st.sampled_from([0.25, 1.0])) * np.maximum(b - draw(st.integers(1, 5)), 0)
    elif kind == "plateaus":
        steps = draw(st.lists(st.sampled_from([0.0, 0.0, 0.125, 1.0]), min_size=most, max_size=most))
        rest = 0.5 + np.cumsum(steps)
    else:
        rest = np.array(draw(st.lists(st.floats(0.1, 3.0), min_size=most, max_size=most)))
    return lengths, np.concatenate([[0.0], rest])


def every_split(lengths, tau):
    """Time of each of the 2^n splits."""
    on_a = np.arange(2 ** len(lengths))[:, None] >> np.arange(len(lengths)) & 1
    return np.maximum(replica_time(on_a * lengths, tau), replica_time((1 - on_a) * lengths, tau))


def long_tailed(seed, requests=100):
    """Lengths like those of the paper's real workload (Table A.3)."""
    drawn = np.random.default_rng(seed).lognormal(np.log(1160), np.log(4115 / 1160) / 1.2816, requests)
    return np.clip(np.rint(drawn), 1, 16384)


@settings(max_examples=300, deadline=None)
@given(instances())
@example(([5, 5, 5, 5], np.array([0.0, 1.0, 1.0, 2.0, 2.0])))
@example(([234, 171, 50, 264, 215, 79, 72], np.array([0.0, 1.5, 2.0, 2.5, 3.0, 5.5, 8.0, 10.5])))
@example(([68, 44, 226, 24, 147, 67, 89, 73], np.array([0.0, 1.5, 2.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0])))
@example(([1, 1, 16384], np.array([0.0, 3.0, 0.1, 0.1])))
def test_the_optimum_is_the_best_of_all_splits(instance):
    lengths, tau = instance
    assert optimal_split(lengths, tau).time_s == pytest.approx(every_split(lengths, tau).min(), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(instances())
def test_the_split_has_every_request_once_and_takes_the_time_that_it_says(instance):
    lengths, tau = instance
    split = optimal_split(lengths, tau)
    assert sorted(split.tail + split.bulk) == list(range(len(lengths)))
    assert len(split.tail) <= len(split.bulk)
    sides = [[lengths[i] for i in side] for side in (split.tail, split.bulk)]
    assert all(side == sorted(side, reverse=True) for side in sides)
    assert split.time_s == max(float(replica_time(side, tau)) for side in sides)


@settings(max_examples=60, deadline=None)
@given(instances(least=2), st.integers(1, 3))
def test_a_search_that_begins_narrow_widens_until_it_is_exact(instance, width):
    lengths, tau = instance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_replicas, "FIRST_WIDTH", width)
        patch.setattr(two_replicas, "WIDER", 2)
        assert optimal_split(lengths, tau).time_s == pytest.approx(every_split(lengths, tau).min(), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(instances(least=2, most=10), st.data())
def test_the_bound_of_a_state_is_never_above_its_best_completion(instance, data):
    lengths, tau = sorted(instance[0], reverse=True), instance[1]
    bounds = relax(np.array(lengths, float), np.diff(tau)[: len(lengths)])
    sides = np.array(data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths))))
    placed = data.draw(st.integers(1, len(lengths)))
    begun, on_a = np.where(np.arange(len(lengths)) < placed, lengths, 0), int(sides[:placed].sum())
    a, b = (replica_time(np.where(side, begun, 0), tau) for side in (sides, ~sides))
    bound = bounds.bound(placed, on_a, np.array([a]), np.array([b]))[0]
    bits = np.arange(2 ** len(lengths))[:, None] >> np.arange(len(lengths)) & 1
    completions = every_split(lengths, tau)[(bits == sides)[:, :placed].all(axis=1)].min()
    assert bound <= completions + 1e-9 * abs(completions)
    if placed == len(lengths):
        assert bound == pytest.approx(completions)


def test_no_request_needs_no_time_and_one_runs_alone():
    none, one = optimal_split([], [0.0]), optimal_split([7], [0.0, 2.0])
    assert (none.time_s, none.tail, none.bulk) == (0.0, (), ())
    assert (one.time_s, one.tail, one.bulk) == (14.0, (), (0,))


def test_two_requests_share_a_replica_only_where_tau_falls():
    assert optimal_split([7, 9], [0.0, 2.0, 2.5]).time_s == 18.0
    apart, together = optimal_split([7, 9], [0.0, 2.0, 2.5]), optimal_split([7, 9], [0.0, 2.0, 0.5])
    assert len(apart.tail) == 1
    assert (together.time_s, together.tail, together.bulk) == (7 * 0.5 + 2 * 2.0, (), (1, 0))


def test_the_few_longest_are_isolated_and_both_replicas_finish_together():
    lengths = [*[300] * 3, *range(100, 140)]
    tau = np.concatenate([[0.0], 0.01 * (1 + np.arange(1, 44) / 16)])
    split = optimal_split(lengths, tau)
    assert set(split.tail) >= {0, 1, 2} and len(split.tail) < 12
    tail_s, bulk_s = (float(replica_time([lengths[i] for i in side], tau)) for side in (split.tail, split.bulk))
    assert min(tail_s, bulk_s) > 0.99 * split.time_s


@pytest.mark.parametrize(("seed", "batch"), [(0, 8), (1, 8), (1, 32)])
def test_a_hundred_requests_under_a_straight_tau_are_split_as_number_partitioning_says(seed, batch):
    lengths = long_tailed(seed)
    tau = np.concatenate([[0], batch + np.arange(1, 101)]).astype(float)
    assert optimal_split(lengths, tau).time_s == best_partition(lengths, batch)


def best_partition(lengths, batch):
    """tau(b) = batch + b costs a replica its sum of tokens, plus batch times its longest: for each longest request of
    the second replica (all longer ones run on the first), try every sum that the shorter ones can make."""
    tokens = sorted(map(int, lengths), reverse=True)
    best, sums, shorter = sum(tokens) + batch * tokens[0], 1, 0
    for k in range(len(tokens) - 1, 0, -1):
        reachable = np.flatnonzero(
            np.unpackbits(np.frombuffer(sums.to_bytes(shorter // 8 + 1, "little"), np.uint8), bitorder="little")
        )
        first = batch * tokens[0] + sum(tokens[:k]) + reachable
        second = batch * tokens[k] + tokens[k] + shorter - reachable
        best = min(best, int(np.maximum(first, second).min()))
        sums, shorter = sums | sums << tokens[k], shorter + tokens[k]
    return best


@pytest.mark.parametrize("seed", range(2))
def test_a_hundred_requests_are_split_so_that_no_move_and_no_exchange_helps(seed):
    b = np.arange(1, 101)
    lengths, tau = long_tailed(seed), np.concatenate([[0.0], 0.005 * (1 + 1.6 * (1 - np.exp(-b / 16)) + b / 200)])
    split = optimal_split(lengths, tau)
    on_a = np.isin(np.arange(100), split.tail)
    one = np.eye(100, dtype=bool)
    flips = np.concatenate([one, (one[:, None] | one)[np.triu_indices(100, 1)]])
    near = on_a ^ flips
    times = np.maximum(replica_time(near * lengths, tau), replica_time(~near * lengths, tau))
    assert times.min() >= split.time_s * (1 - 1e-9)
    assert split.time_s <= best_top_k(lengths, tau).time_s


def test_inputs_that_cannot_be_split_are_refused():
    with pytest.raises(ValueError, match="whole tokens"):
        optimal_split([1.5, 2], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="whole tokens"):
        optimal_split([1, -2], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match=r"tau must be known up to b = 2"):
        optimal_split([1, 2], [0.0, 1.0])
    for tau in ([1.0, 1.0, 2.0], [0.0, 0.0, 2.0], [0.0, 1.0, np.inf]):
        with pytest.raises(ValueError, match="tau must be 0 at b = 0 and a positive"):
            optimal_split([1, 2], tau)
