import pytest

from tailsieve_rl.routing.ledger import ConservationError, Ledger, TailGroup
from tailsieve_rl.routing.plan import plan_step


def plan(step=1, tail=(), fresh=("a", "b", "c"), q_next=1):
    return plan_step(step=step, responses=1, tail=tail, fresh=fresh, q_next=q_next, m=0, replicas=["r0", "r1"])


def after_one_step():
    return Ledger().begin(plan()).finish(1, ["a", "c"], ["b"])


def test_the_books_follow_a_group_from_the_draw_through_the_tail_set_to_the_batch():
    ledger = after_one_step()
    assert ledger == Ledger(drawn=3, consumed=2, tail=(TailGroup("b", 1, 1),), step=1)
    ledger = ledger.begin(plan(2, tail=[("b", 2)], fresh=("d",), q_next=0))
    assert (ledger.drawn, len(ledger.running), ledger.tail, ledger.tail_age_max) == (4, 2, (), 1)
    assert ledger.finish(2, ["b", "d"], []) == Ledger(drawn=4, consumed=4, step=2, tail_age_max=1)


def test_what_the_warm_up_completes_is_discarded_and_what_it_leaves_over_is_not():
    ledger = Ledger().begin(plan(0)).finish(0, ["a", "c"], ["b"], discard=True)
    assert ledger == Ledger(drawn=3, discarded=2, tail=(TailGroup("b", 1, 0),), step=0)
    ledger.check()


def test_a_step_cannot_begin_while_another_runs():
    with pytest.raises(ConservationError, match="step 2 began while 3 groups were running"):
        Ledger().begin(plan()).begin(plan(2))


@pytest.mark.parametrize("tail", [[], [("b", 1)], [("b", 3)], [("b", 2), ("x", 2)], [("x", 2)]])
def test_a_plan_that_does_not_regenerate_exactly_the_tail_set_is_refused(tail):
    with pytest.raises(ConservationError, match="step 2 must regenerate exactly the tail set"):
        after_one_step().begin(plan(2, tail=tail, fresh=("d",), q_next=0))


def test_a_plan_that_draws_a_group_of_the_tail_set_again_is_refused():
    doubled = plan(2, tail=[("b", 2)], fresh=("d",), q_next=0)
    object.__setattr__(doubled, "groups", (*doubled.groups, plan(2, fresh=("b",), q_next=0).groups[0]))
    with pytest.raises(ConservationError, match=r"draws groups that are in the tail set: \{'b'\}"):
        after_one_step().begin(doubled)


@pytest.mark.parametrize(
    ("consumed", "candidates", "wrong"),
    [
        (["a"], ["b"], "['c']"),
        (["a", "b", "c"], ["b"], "['b']"),
        (["a", "c", "c"], ["b"], "['c']"),
        (["a", "x"], ["b"], "['c', 'x']"),
    ],
)
def test_a_group_that_was_lost_doubled_or_never_ran_is_named(consumed, candidates, wrong):
    with pytest.raises(ConservationError) as error:
        Ledger().begin(plan()).finish(1, consumed, candidates)
    assert str(error.value).endswith(f"lost or doubled: {wrong}") and "step 1" in str(error.value)


def test_a_tail_group_cannot_be_left_over_again():
    ledger = after_one_step().begin(plan(2, tail=[("b", 2)], fresh=("d",), q_next=0))
    with pytest.raises(ConservationError, match=r"step 2: tail groups must complete, \['b'\] were left over"):
        ledger.finish(2, ["d"], ["b"])


def test_a_group_that_waited_longer_than_a_step_shows_in_the_oldest_age():
    ledger = after_one_step().begin(plan(4, tail=[("b", 2)], fresh=("d",), q_next=0))
    assert ledger.tail_age_max == 3


def test_books_that_do_not_balance_are_an_error():
    Ledger(drawn=3, consumed=1, discarded=1, tail=(TailGroup("b", 1, 1),)).check()
    with pytest.raises(ConservationError, match="3 prompts were drawn but 2 are accounted for"):
        Ledger(drawn=3, consumed=2).check()
