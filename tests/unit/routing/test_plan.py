import pytest

from tailsieve_rl.routing.plan import Pool, plan_step

REPLICAS = ("a", "b", "c", "d")


def plan(tail=("t0", "t1"), fresh=("f0", "f1", "f2"), q_next=1, m=1, replicas=REPLICAS):
    return plan_step(
        step=7, responses=2, tail=[(uid, 2) for uid in tail], fresh=fresh, q_next=q_next, m=m, replicas=replicas
    )


def test_the_first_m_replicas_are_the_tail_pool_and_each_pool_counts_its_groups_from_zero():
    planned = plan(m=2)
    assert (planned.tail_replicas, planned.bulk_replicas) == (("a", "b"), ("c", "d"))
    assert [(t.uid, t.attempt, t.tail, t.pool, t.ordinal) for t in planned.groups] == [
        ("t0", 2, True, Pool.TAIL, 0),
        ("t1", 2, True, Pool.TAIL, 1),
        ("f0", 1, False, Pool.BULK, 0),
        ("f1", 1, False, Pool.BULK, 1),
        ("f2", 1, False, Pool.BULK, 2),
    ]
    assert (planned.q, planned.m, planned.q_next, planned.fresh_needed) == (2, 2, 1, 2)


def test_without_a_tail_pool_the_tail_groups_run_first_among_the_others_on_all_replicas():
    planned = plan(m=0)
    assert (planned.tail_replicas, planned.bulk_replicas) == ((), REPLICAS)
    assert [(t.pool, t.ordinal, t.tail) for t in planned.groups] == [(Pool.BULK, i, i < 2) for i in range(5)]
    assert planned.replicas_of(Pool.BULK) == REPLICAS and planned.replicas_of(Pool.TAIL) == ()


def test_without_tail_groups_there_is_no_tail_pool_whatever_m_says():
    planned = plan(tail=(), m=3)
    assert (planned.m, planned.bulk_replicas) == (0, REPLICAS)
    assert str(planned.allocation) == "(q=0, m=0)"


def test_when_replicas_died_the_bulk_pool_keeps_one_and_the_tail_pool_shrinks():
    planned = plan(m=3, replicas=("a", "b"))
    assert (planned.m, planned.tail_replicas, planned.bulk_replicas) == (1, ("a",), ("b",))
    assert plan(m=3, replicas=("a",)).m == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"replicas": ()}, "step 7: no replica is alive"),
        ({"q_next": 4}, "step 7: 4 groups cannot be left over from 3 fresh ones"),
        ({"q_next": -1}, "step 7: -1 groups cannot be left over"),
        ({"m": -1}, "step 7: m = -1 tail replicas, must be 0 or more"),
        ({"fresh": ("f0", "t1", "f2")}, "step 7: a group was planned twice"),
        ({"fresh": ("f0", "f0", "f2")}, "step 7: a group was planned twice"),
    ],
)
def test_a_step_that_cannot_run_is_refused_in_words(wrong, words):
    with pytest.raises(ValueError, match=words):
        plan(**wrong)
