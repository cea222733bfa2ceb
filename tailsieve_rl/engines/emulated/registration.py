"""Makes the rollout name "emulated" known to verl's training ranks.

For verl 0.9.1: replicas have a registry with a method to add to it, the ranks' side of a rollout has a private table,
`verl.workers.rollout.base._ROLLOUT_REGISTRY`. Unnecessary once verl has a way to add to that.
"""

from __future__ import annotations

from tailsieve_rl.engines.emulated.settings import EMULATED


def register_adapter() -> None:
    """Have verl know what a training rank does about an emulated rollout: nothing."""
    from verl.workers.rollout import base

    base._ROLLOUT_REGISTRY[EMULATED, "async"] = "tailsieve_rl.engines.emulated.replica.EmulatedAdapter"
