"""The virtual-time executor against the rules, in small steps that can be computed by hand."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.outcome import ResponseStatus
from tailsieve_rl.routing.plan import StepPlan, plan_step
from tailsieve_rl.routing.policies import TwoPool
from tailsieve_rl.simulation.executor import run_step

TAU = np.array([0.0, 1.0, 1.5, 2.0, 2.5])
LINEAR = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
POLICY = TwoPool(Fixed(Allocation(1, 1)))


def plan(tail: list[str], fresh: list[str], q_next: int, m: int, replicas: int = 2) -> StepPlan:
    return plan_step(
        step=1,
        responses=2,
        tail=[(uid, 2) for uid in tail],
        fresh=fresh,
        q_next=q_next,
        m=m,
        replicas=[f"r{i}" for i in range(replicas)],
    )


def test_the_tail_runs_alone_and_the_cutoff_leaves_the_slowest_group_over() -> None:
    outcome = run_step(plan(["0"], ["1", "2"], 1, 1), np.array([[8, 4], [1, 2], [2, 6]]), POLICY, TAU, TAU)
    assert outcome.tail_time_s == 4 * 1.5 + 4 * 1.0
    assert outcome.cutoff_s == outcome.bulk_time_s == 1 * 2.5 + 1 * 2.0
    assert outcome.gen_time_s == 10.0
    assert [group.uid for group in outcome.consumed] == ["0", "1"] and outcome.candidates == ("2",)


def test_an_aborted_response_has_the_tokens_that_it_got_by_the_cutoff() -> None:
    outcome = run_step(plan(["0"], ["1", "2"], 1, 1), np.array([[8, 4], [1, 2], [2, 6]]), POLICY, TAU, TAU)
    aborted = [r for r in outcome.records if r.status is ResponseStatus.ABORTED]
    assert [(r.uid, r.session, r.response_tokens, r.end_s) for r in aborted] == [("2", 0, 2, 4.5), ("2", 1, 2, 4.5)]
    assert outcome.aborted_tokens == 4


def test_without_records_only_aborted_responses_are_recorded() -> None:
    lengths = np.array([[8, 4], [1, 2], [2, 6]])
    full, short = (run_step(plan(["0"], ["1", "2"], 1, 1), lengths, POLICY, TAU, TAU, records=r) for r in (True, False))
    assert len(full.records) == 6 and len(short.records) == 2
    assert full.aborted_tokens == short.aborted_tokens


def test_at_equal_times_the_first_uid_is_consumed() -> None:
    outcome = run_step(plan([], ["2", "1"], 1, 0), np.array([[3, 3], [3, 3]]), POLICY, TAU, TAU)
    assert [group.uid for group in outcome.consumed] == ["1"] and outcome.candidates == ("2",)


def test_without_a_tail_pool_tail_groups_go_on_alone_after_the_cutoff() -> None:
    outcome = run_step(
        plan(["0"], ["1", "2"], 1, 0, replicas=1), np.array([[9, 1], [2, 2], [5, 5]]), POLICY, LINEAR, LINEAR
    )
    assert outcome.cutoff_s == 6.0 + 5.0
    assert outcome.tail_time_s == 11.0 + 7 * 1.0


def test_the_pools_have_decode_models_of_their_own() -> None:
    lengths = np.array([[8, 4], [1, 2], [2, 6]])
    plain = run_step(plan(["0"], ["1", "2"], 1, 1), lengths, POLICY, TAU, TAU)
    fast = run_step(plan(["0"], ["1", "2"], 1, 1), lengths, POLICY, TAU / 2, TAU)
    assert fast.tail_time_s == pytest.approx(plain.tail_time_s / 2)
    assert fast.bulk_time_s == plain.bulk_time_s
