"""Policies that are told every length (paper A.2), each against the rule that defines it."""

import pickle
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import model_of_curve
from tailsieve_rl.routing.makespan import replica_time
from tailsieve_rl.routing.plan import StepPlan, plan_step
from tailsieve_rl.routing.policies import GradedOracle, SeerOracle, Setup, StreamRLOracle, UniformOracle
from tailsieve_rl.routing.policies.dispatch import by_request

from .random_steps import Scenario, drive

CURVE = model_of_curve([1, 8, 32, 128], [0.01, 0.012, 0.02, 0.045])
quick = settings(max_examples=60, deadline=None)


@dataclass(frozen=True)
class Known:
    """A step whose lengths are known."""

    plan: StepPlan
    lengths: dict[str, list[int]]

    @property
    def flat(self) -> np.ndarray:
        return np.array([self.lengths[task.uid] for task in self.plan.groups]).ravel()

    @property
    def replicas(self) -> int:
        return len(self.plan.bulk_replicas)


def step_of(rows, replicas, uids=None):
    uids = uids or [f"p{i}" for i in range(len(rows))]
    names = [f"r{i}" for i in range(replicas)]
    plan = plan_step(step=3, responses=len(rows[0]), tail=[], fresh=uids, q_next=0, m=0, replicas=names)
    return Known(plan, dict(zip(uids, rows, strict=True)))


@st.composite
def steps(draw: st.DrawFn, least_replicas: int = 1) -> Known:
    groups, responses = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    length = st.integers(1, draw(st.sampled_from([3, 50, 16384])))
    row = st.lists(length, min_size=responses, max_size=responses)
    return step_of(
        draw(st.lists(row, min_size=groups, max_size=groups)), draw(st.integers(least_replicas, least_replicas + 4))
    )


def places(policy, known):
    """(requests,) number of each response's replica, as dispatch asks for it."""
    placement, pool = policy.placement(known.plan, known.lengths), known.plan.bulk_replicas
    n = known.plan.responses
    names = [placement.place(task, session, n, pool, {}) for task in known.plan.groups for session in range(n)]
    return np.array([pool.index(name) for name in names])


def totals(known, chosen):
    return np.bincount(chosen, known.flat, known.replicas)


def longest_first(work, replicas):
    """Each piece, longest first, to the replica with least work; pieces and replicas alike in their order."""
    total, count, chosen = [0] * replicas, [0] * replicas, [0] * len(work)
    for piece in sorted(range(len(work)), key=lambda i: -work[i]):
        chosen[piece] = min(range(replicas), key=lambda r: (total[r], count[r], r))
        total[chosen[piece]] += work[piece]
        count[chosen[piece]] += 1
    return chosen


@quick
@given(steps())
def test_uniform_oracle_keeps_groups_whole_and_no_move_or_exchange_makes_the_fullest_replica_less_full(known):
    chosen = places(UniformOracle(), known).reshape(-1, known.plan.responses)
    assert (chosen == chosen[:, :1]).all()
    home, work = chosen[:, 0], [sum(known.lengths[task.uid]) for task in known.plan.groups]
    total = np.bincount(home, work, known.replicas)
    fullest = int(total.argmax())
    assert total.max() <= np.bincount(longest_first(work, known.replicas), work, known.replicas).max()
    for own in np.flatnonzero(home == fullest):
        for r in set(range(known.replicas)) - {fullest}:
            for given_back in [0, *(work[j] for j in np.flatnonzero(home == r))]:
                shift = work[own] - given_back
                assert max(total[fullest] - shift, total[r] + shift) >= total[fullest]


def test_uniform_oracle_exchanges_groups_where_longest_first_is_not_even():
    works = [3, 3, 2, 2, 2]
    known = step_of([[work - 1, 1] for work in works], 2)
    assert np.bincount(longest_first(works, 2), works).tolist() == [7, 5]
    assert totals(known, places(UniformOracle(), known)).tolist() == [6, 6]


@quick
@given(steps())
def test_seer_oracle_gives_each_response_longest_first_to_the_replica_with_fewest_tokens(known):
    chosen = places(SeerOracle(), known)
    assert chosen.tolist() == longest_first(known.flat.tolist(), known.replicas)
    assert np.ptp(totals(known, chosen)) <= known.flat.max()


@quick
@given(steps(least_replicas=2), st.data())
def test_streamrl_oracle_sends_the_longest_share_to_the_dedicated_replicas_and_only_it(known, data):
    dedicated, share = data.draw(st.integers(1, known.replicas - 1)), data.draw(st.sampled_from([0.0, 0.1, 0.2, 1.0]))
    chosen = places(StreamRLOracle(dedicated, share), known)
    longest = chosen < dedicated
    assert longest.sum() == round(share * len(chosen))
    assert min(known.flat[longest], default=np.inf) >= max(known.flat[~longest], default=0)
    assert np.ptp(totals(known, chosen)[:dedicated]) <= known.flat.max()
    assert np.ptp(np.bincount(chosen, minlength=known.replicas)[dedicated:]) <= 1
    assert chosen[longest].tolist() == longest_first(known.flat[longest].tolist(), dedicated)


def test_streamrl_oracle_marks_a_fifth_unless_told_otherwise():
    known = step_of([[10 * i + j for j in range(5)] for i in range(1, 5)], 4)
    assert np.flatnonzero(places(StreamRLOracle(2), known) < 2).tolist() == [16, 17, 18, 19]


def test_streamrl_oracle_refuses_to_dedicate_no_replica_or_all_of_them():
    known = step_of([[1, 2]], 3)
    for dedicated in (-1, 0, 3, 4):
        with pytest.raises(ValueError, match=f"streamrl_oracle: dedicated = {dedicated} .* 3 replicas, not all"):
            StreamRLOracle(dedicated).placement(known.plan, known.lengths)
    with pytest.raises(ValueError, match=r"streamrl_oracle: share = 1\.2"):
        StreamRLOracle(1, 1.2)


def block_times(known, chosen):
    return [float(replica_time(known.flat[chosen == r], CURVE.table(128))) for r in range(known.replicas)]


@quick
@given(steps())
def test_graded_oracle_cuts_the_sorted_responses_into_blocks_whose_slowest_is_as_fast_as_possible(known):
    chosen = places(GradedOracle(CURVE), known)
    blocks = [known.flat[chosen == r] for r in range(known.replicas)]
    filled = [block for block in blocks if len(block)]
    assert all(len(block) for block in blocks[: len(filled)])
    assert all(before.min() >= after.max() for before, after in pairwise(filled))
    assert max(block_times(known, chosen)) == pytest.approx(fastest_blocks(known.flat, known.replicas))


def fastest_blocks(flat, replicas):
    """Of all ways to cut the sorted requests: the least time of the slowest block."""
    ordered, table = sorted(flat.tolist(), reverse=True), CURVE.table(128)

    @cache
    def slowest(start, left):
        alone = float(replica_time(ordered[start:], table))
        cuts = range(start, len(ordered)) if left > 1 else ()
        return min([alone, *(max(float(replica_time(ordered[start:c], table)), slowest(c, left - 1)) for c in cuts)])

    return slowest(0, replicas)


@pytest.mark.parametrize("seed", range(3))
def test_graded_oracle_finds_the_fastest_blocks_where_many_cuts_are_nearly_as_fast(seed):
    lengths = np.random.default_rng(seed).lognormal(7.0, 1.0, (15, 4)).astype(int)
    known = step_of(lengths.tolist(), 4)
    exact = fastest_blocks(known.flat, 4)
    assert max(block_times(known, places(GradedOracle(CURVE), known))) == pytest.approx(exact, rel=1e-9)


@quick
@given(steps())
def test_graded_oracle_makes_blocks_finish_together_but_for_requests_that_are_too_long_for_it(known):
    chosen = places(GradedOracle(CURVE), known)
    times, sizes = block_times(known, chosen), np.bincount(chosen, minlength=known.replicas)
    shared = max((t for t, size in zip(times, sizes, strict=True) if size > 1), default=0.0)
    ordered = sorted(known.flat.tolist(), reverse=True)
    for r in np.flatnonzero(np.cumsum(sizes) < len(ordered)):
        first = sizes[:r].sum()
        more = float(replica_time(ordered[first : first + sizes[r] + 1], CURVE.table(128)))
        assert more > shared * (1 - 1e-9)


def test_graded_oracle_isolates_few_long_responses_among_many():
    known = step_of([[40000 // (20 + i + j) for j in range(4)] for i in range(0, 120, 4)], 4)
    chosen = places(GradedOracle(CURVE), known)
    sizes = np.bincount(chosen)
    assert sizes[0] < 16 and sizes[3] > 60 and (np.diff(sizes) > 0).all()
    assert max(block_times(known, chosen)) < 1.2 * min(block_times(known, chosen))


ALL = (UniformOracle(), SeerOracle(), StreamRLOracle(1), StreamRLOracle(2, 0.4), GradedOracle(CURVE))


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_the_same_lengths_are_placed_alike_in_whatever_order_the_groups_come(policy):
    rng = np.random.default_rng(0)
    rows = (1 + rng.permutation(12 * 4)).reshape(12, 4) ** 2
    order = rng.permutation(12)
    steps_ = step_of(rows.tolist(), 3), step_of(rows[order].tolist(), 3, [f"p{i}" for i in order])
    first, second = (policy.placement(known.plan, known.lengths).replica_of for known in steps_)
    # StreamRL deals the responses that are not among the longest out in turn, whatever their lengths.
    fixed = {f"r{i}" for i in range(getattr(policy, "dedicated", 3))}
    assert {key: name for key, name in first.items() if name in fixed} == {
        key: name for key, name in second.items() if name in fixed
    }


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_a_placement_is_a_value_that_can_be_had_again_and_sent_elsewhere(policy):
    known = step_of(np.random.default_rng(1).integers(1, 500, (9, 4)).tolist(), 3)
    placement = policy.placement(known.plan, known.lengths)
    assert placement == policy.placement(known.plan, known.lengths)
    assert pickle.loads(pickle.dumps((policy, placement))) == (policy, placement)


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_without_the_length_of_every_response_an_oracle_refuses_by_name(policy):
    known = step_of([[1, 2], [3, 4]], 3)
    with pytest.raises(ValueError, match=f"the policy {policy.name} is an oracle"):
        policy.placement(known.plan, None)
    for missing in ({}, {"p1": [3]}):
        with pytest.raises(ValueError, match=f"{policy.name} was told {len(missing)} lengths of group p1, not 2"):
            policy.placement(known.plan, {"p0": [1, 2], **missing})


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_a_response_whose_replica_died_goes_round_robin_over_those_that_live(policy):
    known = step_of(np.random.default_rng(2).integers(1, 500, (9, 4)).tolist(), 3)
    placement = policy.placement(known.plan, known.lengths)
    alive = [name for name in known.plan.bulk_replicas if name != "r1"]
    moved = Counter()
    for task in known.plan.groups:
        for session in range(4):
            planned = placement.place(task, session, 4, known.plan.bulk_replicas, {})
            now = placement.place(task, session, 4, alive, {})
            assert now == (by_request(task, session, 4, alive) if planned == "r1" else planned)
            moved[planned == "r1"] += 1
    assert moved[True] and moved[False]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_oracles_never_leave_a_group_over_and_go_on_when_replicas_die(policy):
    run = drive(Scenario(Setup(6, 4, 5), policy, steps=4, deaths=frozenset({2, 3})))
    for step in run.steps:
        assert step.plan.allocation == Allocation(0, 0) and step.plan.q_next == 0
        assert set(step.placed.values()) <= set(step.alive)
        assert len(step.placed) == 24
    assert len(run.steps[-1].alive) == 3
