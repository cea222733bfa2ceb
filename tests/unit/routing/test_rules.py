"""The rules of design.md, section 3, on random runs: every transition of (q, m), deaths, rolled-back steps, warm-up."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

from hypothesis import given

import tailsieve_rl
from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.plan import Pool, fresh_groups
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.routing.selection import select
from tailsieve_rl.routing.step import Verdict

from .random_steps import RanStep, Scenario, drive
from .scenarios import Scripted, scenarios, thorough


@thorough
@given(scenarios())
def test_every_drawn_prompt_is_consumed_once_or_waits_in_the_tail_set_or_was_the_warmups(scenario):
    run = drive(scenario)
    drawn: Counter[str] = Counter()
    consumed: Counter[str] = Counter()
    discarded: Counter[str] = Counter()
    for step in run.all_steps:
        drawn.update(task.uid for task in step.plan.groups if not task.tail)
        (discarded if step is run.warmup else consumed).update(g.uid for g in step.outcome.consumed)
        waiting = Counter(group.uid for group in step.after.tail)
        assert drawn == consumed + discarded + waiting
        assert max(drawn.values()) == 1
        step.before.check()
        step.running.check()
        step.after.check()
        assert (step.after.drawn, step.after.consumed, step.after.discarded) == (
            drawn.total(),
            consumed.total(),
            discarded.total(),
        )
        assert len(step.running.running) == len(step.plan.groups) and not step.running.tail
    assert tuple(drawn) == run.drawn


@thorough
@given(scenarios(warmup=False))
def test_a_run_without_leftovers_at_either_end_trains_exactly_the_multiset_it_drew(scenario):
    """So the shifts that transitions cause between neighbouring batches sum to zero (design.md, section 2)."""
    run = drive(scenario)
    assert not run.steps[0].before.tail and not run.steps[-1].after.tail
    assert Counter(run.drawn) == Counter(g.uid for step in run.steps for g in step.outcome.consumed)


@thorough
@given(scenarios())
def test_a_candidate_is_consumed_in_the_very_next_step(scenario):
    run = drive(scenario)
    for step, following in zip(run.all_steps, run.all_steps[1:], strict=False):
        assert set(step.outcome.candidates) <= following.consumed
        assert set(step.outcome.candidates) == {task.uid for task in following.plan.groups if task.tail}
    assert run.steps[-1].after.tail_age_max == any(step.outcome.candidates for step in run.all_steps)
    assert run.steps[-1].outcome.candidates == ()


@thorough
@given(scenarios())
def test_a_consumed_group_has_all_its_responses_and_only_those_of_this_attempt(scenario):
    for step in drive(scenario).all_steps:
        attempts = {task.uid: task.attempt for task in step.plan.groups}
        for group in step.outcome.consumed:
            accepted = {
                a.session: a.tokens
                for a in step.arrivals
                if a.uid == group.uid and a.verdict in (Verdict.WAITING, Verdict.CONSUMED)
            }
            assert sorted(accepted) == list(range(step.plan.responses))
            assert group.lengths == tuple(accepted[i] for i in range(step.plan.responses))
            last = [a for a in step.arrivals if a.uid == group.uid and a.verdict is Verdict.CONSUMED]
            assert [(a.attempt, a.at_s) for a in last] == [(attempts[group.uid], group.finished_s)]


@thorough
@given(scenarios())
def test_an_arrival_of_another_attempt_is_refused_and_changes_nothing(scenario):
    for step in drive(scenario).all_steps:
        attempts = {task.uid: task.attempt for task in step.plan.groups}
        for arrival in step.arrivals:
            if attempts.get(arrival.uid) != arrival.attempt:
                assert arrival.verdict is Verdict.REFUSED
            assert arrival.state_changed == (arrival.verdict in (Verdict.WAITING, Verdict.CONSUMED))


@thorough
@given(scenarios())
def test_the_attempt_number_grows_by_one_at_each_dispatch(scenario):
    dispatches: Counter[str] = Counter()
    for step in drive(scenario).all_steps:
        dispatches.update(task.uid for task in step.plan.groups)
        assert all(task.attempt == dispatches[task.uid] for task in step.plan.groups)
        assert all(group.attempt == dispatches[group.uid] for group in step.after.tail)


@thorough
@given(scenarios())
def test_every_event_is_answered_as_the_rules_say_duplicates_included(scenario):
    for step in drive(scenario).all_steps:
        assert [a.verdict for a in step.arrivals] == [a.expected for a in step.arrivals]


@thorough
@given(scenarios())
def test_every_batch_is_exactly_n_groups(scenario):
    run = drive(scenario)
    groups = scenario.setup.groups
    for step in run.steps:
        assert len(step.outcome.consumed) == groups
        assert len(step.plan.groups) - step.plan.q == fresh_groups(groups, step.plan.q, step.plan.q_next)
        assert len(step.outcome.candidates) == step.plan.q_next
    if run.warmup is not None:
        assert len(run.warmup.plan.groups) == groups
        assert len(run.warmup.outcome.consumed) == groups - run.warmup.plan.q_next


@thorough
@given(scenarios())
def test_a_step_is_complete_once_its_responses_have_finished_and_not_before(scenario):
    for step in drive(scenario).all_steps:
        assert step.state.complete
        assert [a.complete for a in step.arrivals] == [a.expected_complete for a in step.arrivals]


@thorough
@given(scenarios())
def test_pools_are_disjoint_and_no_live_replica_idles(scenario):
    for step in drive(scenario).all_steps:
        plan = step.plan
        assert plan.tail_replicas + plan.bulk_replicas == step.alive
        assert plan.bulk_replicas
        assert len(plan.tail_replicas) == plan.m == plan.allocation.m
        assert plan.m == (min(step.decision.m, len(step.alive) - 1) if plan.q else 0)
        for task in plan.groups:
            assert task.pool is (Pool.TAIL if task.tail and plan.m else Pool.BULK)
            names = {step.placed[task.uid, session] for session in range(plan.responses)}
            assert names <= set(plan.replicas_of(task.pool))


@thorough
@given(scenarios(ties_by_uid=True))
def test_events_in_order_of_time_and_uid_lead_to_the_selection_that_the_times_alone_give(scenario):
    for step in drive(scenario).all_steps:
        plan = step.plan
        fresh = [task.uid for task in plan.groups if not task.tail]
        selection = select({uid: _finished_s(step, uid) for uid in fresh}, plan.fresh_needed)
        assert selection.consumed == step.state.fresh_consumed
        assert selection.candidates == step.state.candidates == step.outcome.candidates
        assert selection.cutoff_s == step.state.cutoff_s


def _finished_s(step: RanStep, uid: str) -> float:
    """When the last response of a fresh group came, whatever became of it; never, if one was aborted."""
    came: dict[int, float] = {}
    for arrival in step.arrivals:
        if (arrival.uid, arrival.attempt) == (uid, 1):
            came.setdefault(arrival.session, arrival.at_s)
    return max(came.values()) if len(came) == step.plan.responses else inf


@thorough
@given(scenarios())
def test_the_same_events_give_the_same_run_and_pickling_between_any_two_events_changes_nothing(scenario):
    assert drive(scenario, reload=True) == drive(scenario)


@thorough
@given(scenarios())
def test_a_step_that_was_rolled_back_leaves_no_trace(scenario):
    untroubled = drive(replace(scenario, failures=frozenset()))
    assert drive(scenario).all_steps == untroubled.all_steps


def test_decisions_do_not_depend_on_the_hash_seed_of_the_process():
    here = Path(__file__).parent
    code = (
        f"from {here.name}.random_steps import drive\n"
        f"from {here.name}.scenarios import Allocation, Scenario, Scripted, Setup\n"
        "script = tuple(Allocation(q, m) for q, m in [(0, 0), (3, 1), (5, 2), (2, 0), (4, 3)])\n"
        "print(drive(Scenario(Setup(6, 3, 4), Scripted(script), steps=5, warmup=True)))"
    )
    path = os.pathsep.join(map(str, [here.parent, Path(tailsieve_rl.__file__).parents[1]]))
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and "StepPlan" in runs[0]


def test_the_rules_hold_through_two_thousand_steps_of_one_run():
    rng = Random(7)
    script = tuple(Allocation(rng.randrange(6), rng.randrange(4)) for _ in range(2000))
    scenario = Scenario(Setup(6, 2, 4), Scripted(script), steps=2000, warmup=True, failures=frozenset({5, 900}))
    run = drive(scenario)
    assert all(len(step.outcome.consumed) == 6 for step in run.steps)
    assert run.steps[-1].after.tail_age_max == 1
    assert Counter(run.drawn) == Counter(g.uid for step in run.all_steps for g in step.outcome.consumed)
