import pytest

from tailsieve_rl.routing.plan import plan_step
from tailsieve_rl.routing.step import Verdict, begin, response_finished


def two_pools(q_next=1):
    """One tail group t and two fresh ones, f and g, of two responses each."""
    return plan_step(step=3, responses=2, tail=[("t", 2)], fresh=["f", "g"], q_next=q_next, m=1, replicas=["a", "b"])


def feed(state, *events):
    verdicts = []
    for at_s, (uid, session, attempt) in enumerate(events, start=1):
        state, verdict = response_finished(state, uid, session, attempt, 10 * at_s, float(at_s))
        verdicts.append(verdict)
    return state, verdicts


def test_the_cutoff_falls_with_the_last_fresh_group_that_is_needed_and_the_others_become_candidates():
    state, verdicts = feed(begin(two_pools()), ("f", 0, 1), ("g", 1, 1), ("g", 0, 1))
    assert verdicts == [Verdict.WAITING, Verdict.WAITING, Verdict.CONSUMED]
    assert (state.cutoff_s, state.fresh_consumed, state.candidates) == (3.0, ("g",), ("f",))
    assert not state.complete


def test_before_the_cutoff_nothing_is_a_candidate():
    state, _ = feed(begin(two_pools()), ("f", 0, 1))
    assert state.candidates == () and state.cutoff_s is None


def test_a_candidate_never_comes_back_and_the_step_waits_for_its_tail_groups():
    state, _ = feed(begin(two_pools()), ("g", 1, 1), ("g", 0, 1))
    state, verdicts = feed(state, ("f", 0, 1), ("f", 1, 1), ("t", 0, 2), ("t", 1, 2))
    assert verdicts == [Verdict.REFUSED, Verdict.REFUSED, Verdict.WAITING, Verdict.CONSUMED]
    assert state.complete and state.candidates == ("f",)
    assert state.groups["t"].lengths == {0: 30, 1: 40} and state.groups["t"].finished_s == 4.0


def test_tail_groups_that_finish_first_do_not_bring_the_cutoff():
    state, _ = feed(begin(two_pools()), ("t", 0, 2), ("t", 1, 2))
    assert state.tail_consumed == ("t",) and state.cutoff_s is None and not state.complete


def test_work_goes_on_for_the_current_attempt_until_the_cutoff_leaves_its_group_over():
    state = begin(two_pools())
    assert state.is_current("t", 2) and state.is_current("f", 1)
    assert not state.is_current("t", 1) and not state.is_current("t", 3) and not state.is_current("x", 1)
    state, _ = feed(state, ("g", 1, 1), ("g", 0, 1))
    assert state.is_current("t", 2) and state.is_current("g", 1) and not state.is_current("f", 1)


@pytest.mark.parametrize("session", [0, -1, 2])
def test_a_response_that_finishes_twice_or_does_not_exist_is_an_error_that_names_it(session):
    state, _ = feed(begin(two_pools()), ("f", 0, 1))
    with pytest.raises(ValueError, match=rf"step 3: response {session} of group f .* 0\.\.1"):
        response_finished(state, "f", session, 1, 10, 2.0)


def test_a_response_of_a_consumed_group_that_finishes_twice_is_an_error_even_after_the_cutoff():
    state, _ = feed(begin(two_pools()), ("g", 1, 1), ("g", 0, 1))
    with pytest.raises(ValueError, match="response 0 of group g finished twice"):
        response_finished(state, "g", 0, 1, 10, 9.0)


def test_when_no_fresh_group_is_needed_the_cutoff_has_fallen_at_the_start():
    state = begin(two_pools(q_next=2))
    assert (state.cutoff_s, state.candidates, state.complete) == (0.0, ("f", "g"), False)
    state, verdicts = feed(state, ("f", 0, 1), ("t", 0, 2), ("t", 1, 2))
    assert verdicts == [Verdict.REFUSED, Verdict.WAITING, Verdict.CONSUMED] and state.complete


def test_a_transition_leaves_the_state_before_it_as_it_was():
    state = begin(two_pools())
    feed(state, ("g", 1, 1), ("g", 0, 1))
    assert state == begin(two_pools())
