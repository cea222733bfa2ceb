"""What a checkpoint holds beside verl's: the tail set with its prompts, the ledger, the policy's state."""

import os
from dataclasses import dataclass
from typing import Any

import torch

from tailsieve_rl.rollout.prompt_stream import Prompt
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.policies import RoutingPolicy, Setup

FILE = "tailsieve.pt"


@dataclass(frozen=True)
class RunState:
    """The state between two steps.

    Attributes:
        ledger: where every prompt is.
        tail: prompts of the ledger's tail set, in its order.
        policy: the policy's name.
        policy_state: its frozen state.
    """

    ledger: Ledger
    tail: tuple[Prompt, ...]
    policy: str
    policy_state: Any


def continues(state: RunState, policy: RoutingPolicy, setup: Setup) -> bool:
    """Whether a policy can go on from a state: written by its kind, with its controller, for this setup."""
    fresh = policy.start(setup)
    known = getattr(state.policy_state, "setup", setup)
    return state.policy == policy.name and type(state.policy_state) is type(fresh) and known == setup


def save_state(folder: str, state: RunState) -> None:
    """Write the state into a checkpoint folder (global_step_N), whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, FILE)
    torch.save(state, path + ".partial")
    os.replace(path + ".partial", path)


def load_state(folder: str) -> RunState | None:
    """Read the state of a checkpoint folder; None if another trainer mode wrote it."""
    path = os.path.join(folder, FILE)
    if not os.path.exists(path):
        return None
    state: RunState = torch.load(path, weights_only=False)
    state.ledger.check()
    return state
