from math import inf

import pytest

from tailsieve_rl.routing.selection import capture_rate, select


def test_the_first_to_finish_are_consumed_and_the_others_keep_the_order_they_were_given_in():
    selection = select({"d": 9.0, "a": 3.0, "c": inf, "b": 1.0}, needed=2)
    assert (selection.consumed, selection.candidates, selection.cutoff_s) == (("b", "a"), ("d", "c"), 3.0)


def test_groups_that_finish_in_the_same_instant_are_taken_by_uid_and_the_surplus_is_left_over():
    selection = select({"c": 2.0, "a": 2.0, "b": 2.0}, needed=2)
    assert (selection.consumed, selection.candidates) == (("a", "b"), ("c",))


def test_without_a_needed_group_there_is_no_cutoff():
    selection = select({"a": 1.0}, needed=0)
    assert (selection.consumed, selection.candidates, selection.cutoff_s) == ((), ("a",), None)


@pytest.mark.parametrize(
    ("times", "needed", "finished"), [({"a": 1.0, "b": inf}, 2, 1), ({"a": 1.0}, 2, 1), ({}, -1, 0)]
)
def test_a_cutoff_that_cannot_be_reached_is_refused_with_the_number_that_finished(times, needed, finished):
    with pytest.raises(ValueError, match=f"needs {needed} fresh groups, {finished} finished"):
        select(times, needed)


@pytest.mark.parametrize(
    ("tail", "expected"), [((), None), (("a", "b"), 1.0), (("a", "d"), 0.5), (("c", "d"), 0.0), (("b",), 0.0)]
)
def test_the_capture_rate_is_the_share_of_the_longest_groups_that_ran_as_tail(tail, expected):
    assert capture_rate({"d": 1, "c": 5, "b": 7, "a": 9}, tail) == expected


def test_equal_work_counts_as_longest_by_uid():
    assert capture_rate({"b": 5, "a": 5}, ["a"]) == 1.0
    assert capture_rate({"b": 5, "a": 5}, ["b"]) == 0.0
