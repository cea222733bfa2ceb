"""What verl 0.9.0 lacks for the trainer mode.

version   verl 0.9.0: workers/rollout/llm_server.py (LLMServerManager), trainer/ppo/v1/trainer_base.py (step)
why       it reads no router file (`rollout.router_config_path`), and its step has no `prepare_step`: it calls
          `_add_batch_to_generate`, which later versions call from there
the end   when versions.KNOWN names no verl 0.9.0 any more
"""

from typing import Any

import ray
from omegaconf import DictConfig
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from tailsieve_rl.rollout.coordinator import Coordinator

PREPARES = hasattr(PPOTrainerSync, "prepare_step")


class PreparedSteps(PPOTrainerSync):
    """verl's synchronous trainer, whose steps begin with `prepare_step` in every version."""

    if not PREPARES:

        def _add_batch_to_generate(self) -> None:
            self.prepare_step()


def reads_router_file(config: DictConfig) -> bool:
    """Whether verl makes the router that `rollout.router_config_path` names."""
    return "router_config_path" in config.actor_rollout_ref.rollout


def put_coordinator(config: DictConfig, servers: Any) -> None:
    """Put the coordinator in the place of the router that verl's LLMServerManager has made, before anybody has it.

    Does nothing where verl has made the coordinator itself.
    """
    if reads_router_file(config):
        return
    named = dict(zip(servers.server_addresses, servers.server_handles, strict=True))
    servers.global_load_balancer = ray.remote(Coordinator).remote(servers=named, yaml_config={})
