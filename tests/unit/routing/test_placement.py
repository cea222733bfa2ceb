"""Where single responses go, and how much room that needs."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.plan import GroupTask, Pool
from tailsieve_rl.routing.policies import ORACLES, POLICIES, LeastLoaded, Setup, TwoPool, Uniform
from tailsieve_rl.routing.policies.dispatch import DISPATCH, by_group, by_request
from tailsieve_rl.routing.room import Room, needed_room

from .random_steps import Scenario, drive
from .scenarios import Scripted, scenarios, thorough

sizes = st.tuples(st.integers(1, 30), st.integers(1, 8), st.integers(1, 9))


def keeps_groups_whole(policy):
    return isinstance(policy, Uniform) or getattr(policy, "dispatch", "request") == "group"


def place_all(place, groups, responses, replicas):
    """{(group, session): replica} of a pool that is filled at once."""
    pool, load, placed = [f"r{i}" for i in range(replicas)], Counter(), {}
    for ordinal in range(groups):
        task = GroupTask(f"p{ordinal}", 1, False, Pool.BULK, ordinal)
        for session in range(responses):
            name = place(task, session, responses, pool, load)
            placed[ordinal, session] = name
            load[name] += 1
    return placed


def spread(placed, replicas):
    counts = Counter(placed.values())
    return [counts[f"r{i}"] for i in range(replicas)]


@given(sizes)
def test_round_robin_by_request_gives_two_replicas_counts_that_differ_by_one_at_most(size):
    for policy in (TwoPool(Fixed(Allocation(1, 1)), "request"), TwoPool(Allocation(1, 1))):
        counts = spread(place_all(policy.place, *size), size[2])
        assert max(counts) - min(counts) <= 1


@given(sizes)
def test_round_robin_by_group_keeps_groups_whole_and_deals_them_out_evenly(size):
    for policy in (Uniform(), TwoPool(Fixed(Allocation(1, 1)), "group")):
        placed = place_all(policy.place, *size)
        homes = defaultdict(set)
        for (group, _), name in placed.items():
            homes[group].add(name)
        assert all(len(names) == 1 for names in homes.values())
        counts = [count // size[1] for count in spread(placed, size[2])]
        assert max(counts) - min(counts) <= 1


@thorough
@given(scenarios())
def test_both_pools_of_every_step_are_filled_evenly(scenario):
    for step in drive(scenario).all_steps:
        unit = step.plan.responses if keeps_groups_whole(scenario.policy) else 1
        for pool in Pool:
            uids = {task.uid for task in step.plan.groups if task.pool is pool}
            counts = Counter(name for (uid, _), name in step.placed.items() if uid in uids)
            spread_s = [counts[name] for name in step.plan.replicas_of(pool)] or [0]
            assert max(spread_s) - min(spread_s) <= unit


@thorough
@given(scenarios())
def test_the_room_that_a_plan_needs_is_the_fullest_replica_that_its_placement_makes(scenario):
    for step in drive(scenario).all_steps:
        plan = step.plan
        counts = Counter(step.placed.values())
        fullest = {pool: max((counts[name] for name in plan.replicas_of(pool)), default=0) for pool in Pool}
        room = needed_room(
            plan.allocation,
            fresh=len(plan.groups) - plan.q,
            responses=plan.responses,
            replicas=len(step.alive),
            by_group=keeps_groups_whole(scenario.policy),
        )
        assert room == Room(tail=fullest[Pool.TAIL], bulk=fullest[Pool.BULK])
        assert room.largest == max(counts.values())


@pytest.mark.parametrize(("by_group", "expected"), [(False, Room(tail=11, bulk=23)), (True, Room(tail=16, bulk=24))])
def test_room_is_rounded_up_to_whole_responses_or_whole_groups(by_group, expected):
    assert needed_room(Allocation(4, 3), fresh=17, responses=8, replicas=9, by_group=by_group) == expected


def test_least_loaded_takes_the_replica_with_fewest_running_requests():
    task = GroupTask("p", 1, False, Pool.BULK, 0)
    assert LeastLoaded().place(task, 0, 4, ["a", "b", "c"], {"a": 2, "b": 1, "c": 3}) == "b"
    assert LeastLoaded().place(task, 0, 4, ["a", "b", "c"], {"a": 2, "b": 1}) == "c"


def test_least_loaded_breaks_ties_in_turn_so_that_the_same_events_give_the_same_placement():
    pool = ["a", "b", "c"]
    tasks = [GroupTask(f"p{i}", 1, False, Pool.BULK, i) for i in range(2)]
    turns = [LeastLoaded().place(task, session, 2, pool, {}) for task in tasks for session in range(2)]
    assert turns == ["a", "b", "c", "a"]
    assert LeastLoaded().place(tasks[0], 1, 2, pool, {"b": 1}) == "c"


def test_policies_that_know_one_pool_never_leave_a_group_over():
    for policy in (Uniform(), LeastLoaded()):
        run = drive(Scenario(Setup(4, 2, 3), policy, steps=3))
        assert all(step.plan.allocation == Allocation(0, 0) and step.plan.q_next == 0 for step in run.steps)


def test_the_two_pool_policy_keeps_its_allocation_from_the_warm_up_to_the_last_step():
    run = drive(Scenario(Setup(6, 2, 4), TwoPool(Fixed(Allocation(2, 1))), steps=4, warmup=True))
    assert run.warmup.plan.q_next == 2
    assert [(step.plan.q, step.plan.m, step.plan.q_next) for step in run.steps] == [(2, 1, 2)] * 3 + [(2, 1, 0)]


def test_the_way_to_uniform_routing_and_back_is_a_sequence_of_ordinary_steps():
    script = tuple(Allocation(q, m) for q, m in [(2, 1), (2, 0), (0, 0), (0, 1), (3, 2)])
    run = drive(Scenario(Setup(6, 2, 4), Scripted(script), steps=5, warmup=True))
    shapes = [(step.plan.q, step.plan.m, step.plan.q_next, step.plan.fresh_needed) for step in run.steps]
    assert shapes == [(2, 1, 2, 4), (2, 0, 0, 4), (0, 0, 0, 6), (0, 0, 3, 6), (3, 2, 0, 3)]


def test_policies_and_dispatch_modes_are_known_by_name():
    assert dict(DISPATCH) == {"request": by_request, "group": by_group}
    assert set(POLICIES) == {"uniform", "least_loaded", "two_pool", *ORACLES}
    assert {Uniform().name, LeastLoaded().name, TwoPool(Fixed(Allocation(1, 1))).name} == set(POLICIES) - set(ORACLES)
