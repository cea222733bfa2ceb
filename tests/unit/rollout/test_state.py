"""What a checkpoint's state can be continued by."""

from pathlib import Path

import pytest

from tailsieve_rl.rollout.state import RunState, continues, load_state, save_state
from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Controller, Fixed, Hierarchical, Joint
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool, Uniform

SETUP = Setup(64, 8, 8)
AT = Allocation(4, 2)


def saved(policy: RoutingPolicy, folder: Path) -> RunState:
    save_state(str(folder), RunState(Ledger(), (), policy.name, policy.start(SETUP)))
    state = load_state(str(folder))
    assert state is not None
    return state


@pytest.mark.parametrize("controller", [Fixed(AT), Hierarchical(AT), Joint(AT)])
def test_a_policy_goes_on_from_the_state_of_its_own_controller(controller: Controller, tmp_path: Path) -> None:
    state = saved(TwoPool(controller), tmp_path)
    assert continues(state, TwoPool(controller), SETUP)
    assert TwoPool(controller).decide(state.policy_state, 4).q_next == 4


def test_another_policy_controller_or_size_starts_anew(tmp_path: Path) -> None:
    state = saved(TwoPool(Joint(AT)), tmp_path)
    assert not continues(state, Uniform(), SETUP)
    assert not continues(state, TwoPool(Hierarchical(AT)), SETUP)
    assert not continues(state, TwoPool(Joint(AT)), Setup(64, 8, 4))


def test_a_folder_of_another_trainer_mode_has_no_state(tmp_path: Path) -> None:
    assert load_state(str(tmp_path)) is None
