import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation, check_allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.policies import Setup, TwoPool, default_allocation


@pytest.mark.parametrize(
    ("q", "m", "words"),
    [
        (-1, 1, ["allocation.initial_groups=-1", "between 0 and N-1 = 7", "data.train_batch_size = 8"]),
        (8, 1, ["allocation.initial_groups=8", "between 0 and N-1 = 7", "data.train_batch_size = 8"]),
        (2, -1, ["allocation.initial_replicas=-1", "between 0 and R-1 = 3", "R = 4"]),
        (2, 4, ["allocation.initial_replicas=4", "between 0 and R-1 = 3", "R = 4"]),
        (2, 0, ["allocation.initial_groups=2", "allocation.initial_replicas=0", "both"]),
        (0, 1, ["allocation.initial_groups=0", "allocation.initial_replicas=1", "both"]),
    ],
)
def test_an_allocation_that_no_step_could_run_is_refused_with_key_value_and_range(q, m, words):
    with pytest.raises(ValueError) as refusal:
        check_allocation(Allocation(q, m), groups=8, replicas=4)
    for word in words:
        assert word in str(refusal.value)


def test_every_other_allocation_is_accepted_up_to_the_last_group_and_replica():
    for q, m in [(0, 0), (1, 1), (7, 3), (1, 3), (7, 1)]:
        check_allocation(Allocation(q, m), groups=8, replicas=4)
    check_allocation(UNIFORM, groups=1, replicas=1)


def test_the_two_pool_policy_refuses_a_wrong_allocation_as_soon_as_it_knows_the_setup():
    with pytest.raises(ValueError, match=r"allocation\.initial_replicas=4"):
        TwoPool(Fixed(Allocation(2, 4))).start(Setup(groups=8, responses=2, replicas=4))


def test_only_zero_groups_on_zero_replicas_is_uniform():
    assert UNIFORM.is_uniform
    assert not Allocation(1, 0).is_uniform and not Allocation(0, 1).is_uniform
    assert str(Allocation(4, 2)) == "(q=4, m=2)"


@pytest.mark.parametrize(
    ("groups", "replicas", "expected"),
    [
        (64, 8, (4, 2)),
        (64, 4, (4, 1)),
        (16, 2, (1, 1)),
        (256, 64, (16, 16)),
        (2, 2, (1, 1)),
        (1, 8, (0, 0)),
        (64, 1, (0, 0)),
    ],
)
def test_the_default_start_is_a_sixteenth_of_the_groups_on_a_quarter_of_the_replicas(groups, replicas, expected):
    allocation = default_allocation(Setup(groups, 8, replicas))
    assert (allocation.q, allocation.m) == expected


def test_the_default_start_can_always_run():
    for groups in range(1, 70):
        for replicas in range(1, 20):
            check_allocation(default_allocation(Setup(groups, 1, replicas)), groups, replicas)
