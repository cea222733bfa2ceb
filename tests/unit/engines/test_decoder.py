"""What an emulated replica decodes, and when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.engines.emulated.decoder import Decoder
from tailsieve_rl.routing.makespan import response_times

TAU = [0.0, 1.0, 1.5, 2.0, 3.0]
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def _finish_all(decoder: Decoder) -> dict[str, float]:
    return dict(decoder.advance(1e9))


@given(LENGTHS)
def test_requests_that_start_together_finish_when_the_makespan_model_says(lengths: list[int]) -> None:
    decoder = Decoder(TAU, capacity=4)
    for i, length in enumerate(lengths):
        decoder.admit(str(i), length)
    finished = _finish_all(decoder)
    rows = np.array(lengths)[:, None]
    expected, _ = response_times(rows, np.zeros_like(rows), np.zeros(len(rows), bool), len(rows), np.array(TAU))
    assert [finished[str(i)] for i in range(len(lengths))] == pytest.approx(expected[:, 0])


@given(LENGTHS, st.lists(st.floats(0.1, 30.0), max_size=6))
def test_how_often_the_time_is_looked_at_changes_nothing(lengths: list[int], looks: list[float]) -> None:
    often, once = Decoder(TAU, 4), Decoder(TAU, 4)
    for i, length in enumerate(lengths):
        often.admit(str(i), length)
        once.admit(str(i), length)
    seen = [end for at in np.cumsum(looks) for end in often.advance(float(at))]
    assert dict(seen) | _finish_all(often) == pytest.approx(_finish_all(once))


def test_a_request_beyond_the_capacity_waits_for_a_place() -> None:
    decoder = Decoder(TAU, capacity=1)
    decoder.admit("a", 3)
    decoder.admit("b", 2)
    assert (decoder.running, decoder.waiting) == (1, 1)
    assert _finish_all(decoder) == {"a": 3.0, "b": 5.0}


def test_an_aborted_request_leaves_with_its_tokens_and_the_others_go_on_faster() -> None:
    decoder = Decoder(TAU, capacity=2)
    decoder.admit("a", 10)
    decoder.admit("b", 10)
    decoder.advance(3.0)
    assert decoder.abort("b") == pytest.approx(2.0)
    assert decoder.abort("b") == 0.0
    assert _finish_all(decoder) == {"a": pytest.approx(11.0)}


def test_a_waiting_request_that_is_aborted_never_runs() -> None:
    decoder = Decoder(TAU, capacity=1)
    decoder.admit("a", 3)
    decoder.admit("b", 2)
    assert decoder.abort("b") == 0.0
    assert _finish_all(decoder) == {"a": 3.0}


def test_an_abort_makes_room_for_one_that_waits() -> None:
    decoder = Decoder(TAU, capacity=1)
    decoder.admit("a", 30)
    decoder.admit("b", 2)
    decoder.advance(1.0)
    decoder.abort("a")
    assert _finish_all(decoder) == {"b": 3.0}


def test_a_tau_that_is_not_known_up_to_the_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than the capacity 5"):
        Decoder(TAU, capacity=5)
