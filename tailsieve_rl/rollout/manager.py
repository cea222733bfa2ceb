"""The agent-loop manager: hands whole groups to workers, evenly mixed."""

from typing import Any

import ray
from tensordict import TensorDict
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ
from verl.utils import tensordict_utils as tu

from tailsieve_rl.rollout.worker import TailSieveAgentLoopWorkerActor


class TailSieveAgentLoopManager(AgentLoopManagerTQ):
    """verl's AgentLoopManagerTQ with workers that publish whole groups only (agent.agent_loop_manager_class)."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any):
        super().__init__(config, *args, **kwargs)
        self.agent_loop_workers_class = TailSieveAgentLoopWorkerActor

    def generate_sequences(self, prompts: TensorDict) -> None:
        """Dispatch groups without waiting for them; every worker gets a like share of tail and fresh groups."""
        workers = self.agent_loop_workers[: len(prompts)]
        ray.get(
            [
                worker.generate_sequences.remote(
                    tu.index_select_tensor_dict(prompts, list(range(i, len(prompts), len(workers))))
                )
                for i, worker in enumerate(workers)
            ]
        )
