import pytest

from tailsieve_rl.routing.outcome import GroupOutcome, ResponseRecord, ResponseStatus, StepOutcome
from tailsieve_rl.routing.plan import Pool, plan_step

CONSUMED, ABORTED, RETRIED = ResponseStatus.CONSUMED, ResponseStatus.ABORTED, ResponseStatus.RETRIED


def outcome(m=1, tail_time_s=6.0, bulk_time_s=8.0, lengths=((30, 10), (20, 0)), thrown_away=()):
    plan = plan_step(step=1, responses=2, tail=[("t", 2)], fresh=["f", "g"], q_next=1, m=m, replicas=["a", "b"])
    rows = [(n, CONSUMED) for group in lengths for n in group] + list(thrown_away)
    return StepOutcome(
        plan=plan,
        consumed=tuple(GroupOutcome(uid, uid == "t", n, 1.0) for uid, n in zip("tf", lengths, strict=False)),
        candidates=("g",),
        cutoff_s=bulk_time_s,
        tail_time_s=tail_time_s,
        bulk_time_s=bulk_time_s,
        gen_time_s=max(tail_time_s, bulk_time_s),
        records=tuple(
            ResponseRecord("u", 0, 0, 1, Pool.BULK, "a", status, 5, tokens, 0.0, None, 1.0) for tokens, status in rows
        ),
    )


def test_work_is_the_sum_of_a_groups_response_tokens():
    assert GroupOutcome("t", True, (30, 10, 2), 1.0).work == 42


def test_tokens_thrown_away_by_the_cutoff_and_by_retries_are_the_wasted_ones():
    step = outcome(thrown_away=[(25, ABORTED), (15, RETRIED)])
    assert (step.aborted_tokens, step.consumed_tokens, step.wasted_fraction) == (40, 60, 0.4)


def test_a_step_that_generated_nothing_wasted_nothing():
    assert outcome(lengths=()).wasted_fraction == 0.0


@pytest.mark.parametrize(
    ("tail_s", "bulk_s", "expected"),
    [(6.0, 8.0, 0.25), (8.0, 6.0, 0.25), (8.0, 8.0, 0.0), (0.0, 8.0, 1.0), (0.0, 0.0, 0.0)],
)
def test_imbalance_is_the_idle_share_of_the_pool_that_finished_first(tail_s, bulk_s, expected):
    assert outcome(tail_time_s=tail_s, bulk_time_s=bulk_s).imbalance == expected


def test_one_pool_is_never_out_of_balance():
    assert outcome(m=0).imbalance == 0.0
