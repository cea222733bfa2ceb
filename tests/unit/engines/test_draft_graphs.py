"""The start-up schedule and the capture sizes give every draft depth its CUDA graphs, by vLLM's own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.engines.vllm.draft_graphs import CEILING, capture_sizes, schedule
from tailsieve_rl.input_error import InputError

depth_sets = st.sets(st.integers(0, 16), min_size=1)


def test_a_schedule_gives_one_batch_size_to_each_depth_and_the_rest_to_the_largest():
    assert schedule({4, 0, 2}, 256) == [[1, 1, 0], [2, 2, 2], [3, 256, 4]]
    assert schedule([3], 64) == [[1, 64, 3]]


@given(depths=depth_sets, spare=st.integers(0, 200))
def test_a_schedule_covers_every_batch_size_once_and_mentions_every_depth(depths, spare):
    max_num_seqs = len(depths) + spare
    entries = schedule(depths, max_num_seqs)
    assert [b for first, last, _ in entries for b in range(first, last + 1)] == list(range(1, max_num_seqs + 1))
    assert {depth for *_, depth in entries} == depths


def test_more_depths_than_batch_sizes_are_refused():
    with pytest.raises(InputError, match=r"max_num_seqs = 2 .* 3 draft depths"):
        schedule({0, 1, 2}, 2)


def graphs(sizes: list[int], depths: set[int], max_num_seqs: int) -> dict[int, set[int]]:
    """Numbers of requests that vLLM 0.30 captures for each depth (v1/worker/gpu/cudagraph_utils.py)."""
    found: dict[int, set[int]] = {depth: set() for depth in depths}
    for size in sizes:
        for depth in depths:
            tokens = -(-size // (depth + 1)) * (depth + 1)
            if tokens <= max(sizes) and tokens // (depth + 1) <= max_num_seqs:
                found[depth].add(tokens // (depth + 1))
    return found


@given(depths=depth_sets, max_num_seqs=st.integers(1, 300), data=st.data())
def test_every_batch_below_the_ceiling_finds_a_graph_at_most_a_quarter_larger(depths, max_num_seqs, data):
    sizes = capture_sizes(depths, max_num_seqs)
    assert sizes == sorted(set(sizes)) and sizes[-1] <= CEILING
    captured = graphs(sizes, depths, max_num_seqs)
    for depth in depths:
        largest = max((n for n in captured[depth] if n * (depth + 1) <= CEILING), default=0)
        assert largest >= min(max_num_seqs, CEILING // (depth + 1) - 63)
        if largest:
            batch = data.draw(st.integers(1, largest))
            padded = min(n for n in captured[depth] if n >= batch)
            assert padded <= max(batch * 1.25, batch + 7)
