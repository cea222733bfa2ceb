"""The tail-side proxy (paper 2.4, Appendix D) against a loop over every token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailsieve_rl.routing.proxy import tail_proxy

MOST = 12
counted = settings(max_examples=150, deadline=None)


def token_by_token(base, base_replica, tail, tail_replica, tau):
    """(advantage, penalty, work): the sums of section 2.4 as they are written."""
    advantage = penalty = work = 0.0
    for i, length in enumerate(tail):
        for x in range(1, length + 1):
            b_base = sum(other >= x for other, at in zip(base, base_replica, strict=True) if at == base_replica[i])
            b_tail = sum(other >= x for other, at in zip(tail, tail_replica, strict=True) if at == tail_replica[i])
            difference = tau[b_base] - tau[b_tail]
            advantage += max(difference, 0.0)
            penalty += max(-difference, 0.0)
            work += 1
    return advantage, penalty, work


@st.composite
def steps(draw):
    """A step of a few requests, the first of them isolated; tau may be flat, and generations may differ."""
    base = draw(st.lists(st.integers(1, 25), min_size=1, max_size=MOST))
    count = draw(st.integers(1, len(base)))
    again = draw(st.booleans())
    tail = [draw(st.integers(1, 25)) for _ in range(count)] if again else base[:count]
    base_replica = [draw(st.integers(0, 2)) for _ in base]
    tail_replica = [draw(st.integers(0, 1)) for _ in tail]
    rises = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=MOST, max_size=MOST))
    return base, base_replica, tail, tail_replica, np.concatenate([[0.0], 1.0 + np.cumsum(rises)])


@counted
@given(steps())
def test_the_parts_are_those_of_the_loop_over_tokens(step):
    found = tail_proxy(*step)
    assert (found.advantage_s, found.penalty_s, found.work) == pytest.approx(token_by_token(*step))


@counted
@given(steps())
def test_with_a_flat_tau_isolation_has_neither_an_advantage_nor_a_penalty_while_the_others_run(step):
    base, base_replica, _, tail_replica, _ = step
    flat = np.concatenate([[0.0], np.ones(MOST)])
    found = tail_proxy(base, base_replica, base[: len(tail_replica)], tail_replica, flat)
    assert found.gain_s == 0.0


def test_samples_are_evaluated_each_on_its_own():
    rng = np.random.default_rng(0)
    base, tau = rng.integers(1, 40, (3, 2, 8)), np.arange(9.0)
    homes, places = np.arange(8) % 2, np.array([0, 0, 0])
    together = tail_proxy(base, homes, base[..., :3], places, tau)
    assert together.advantage_s.shape == (3, 2)
    alone = tail_proxy(base[1, 1], homes, base[1, 1, :3], places, tau)
    assert together.advantage_s[1, 1] == alone.advantage_s
    assert together.penalty_s[1, 1] == alone.penalty_s


def test_one_request_alone_saves_what_its_neighbours_cost_it_and_pays_nothing():
    found = tail_proxy([10, 6, 4], [0, 0, 0], [10], [0], [0.0, 1.0, 3.0, 4.0])
    assert found.advantage_s == 4 * (4 - 1) + 2 * (3 - 1)
    assert found.penalty_s == 0.0
    assert found.work == 10


def test_shapes_that_disagree_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        tail_proxy([1, 2], [0, 0], [1], [0, 0], [0.0, 1.0, 1.0])
