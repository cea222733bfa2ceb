"""Stops are exact: ids end with the token that completes the stop string."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.engines.vllm.stop import match_end, tokens_to_keep


def keep(pieces, text, stop, stop_in_text=False):
    """Tokens kept of a response whose tokens decode to `pieces` and whose text vLLM cut to `text`."""
    return tokens_to_keep(accumulate(len(piece) for piece in pieces), match_end(text, stop, stop_in_text))


def test_the_token_that_completes_the_stop_string_is_the_last():
    assert keep(["a", "b", "ST", "OP"], "ab", "STOP") == 4


def test_tokens_of_the_same_engine_step_after_the_stop_string_are_cut():
    assert keep(["a", "b", "ST", "OP", "c", "d"], "ab", "STOP") == 4


def test_a_token_that_reaches_beyond_the_stop_string_is_kept_whole():
    assert keep(["a", "xSTOPy", "z"], "ax", "STOP") == 2


def test_the_text_may_include_the_stop_string():
    assert keep(["a", "ST", "OP", "c"], "aSTOP", "STOP", stop_in_text=True) == 3


def test_a_character_of_several_tokens_ends_with_its_last_token():
    assert keep(["a", "", "", "é", "b"], "a", "é") == 4


def test_tokens_without_text_after_the_stop_string_are_cut():
    assert keep(["a", "STOP", "", ""], "a", "STOP") == 2


def test_a_response_of_the_stop_string_alone_keeps_it():
    assert keep(["STOP", "more"], "", "STOP") == 1


@pytest.mark.parametrize("pieces", [["ab", "ST"], [""], []])
def test_nothing_is_cut_from_a_response_that_does_not_reach_the_end_of_the_match(pieces):
    assert keep(pieces, "ab", "STOP") == len(pieces)


@given(
    before=st.lists(st.text("ab", max_size=3), max_size=6),
    stop=st.text("XYZ", min_size=1, max_size=5),
    cuts=st.sets(st.integers(1, 4)),
    after=st.lists(st.text("abXYZ", max_size=3), max_size=4),
)
def test_whatever_follows_the_stop_string_does_not_change_what_is_kept(before, stop, cuts, after):
    edges = [0, *sorted(cut for cut in cuts if cut < len(stop)), len(stop)]
    pieces = before + [stop[a:b] for a, b in pairwise(edges)]
    assert keep(pieces + after, "".join(before), stop) == len(pieces)
