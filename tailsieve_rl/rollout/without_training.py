"""The rollouts of mode `tailsieve` without the training: what benchmarks and evaluation run on.

Its coordinator, client, agent loops, sampler and queue, and nothing else: no ranks that train, no weight updates, no
rewards.
"""

from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig, open_dict
from transfer_queue import KVBatchMeta
from verl.workers.rollout.llm_server import LLMServerManager

from tailsieve_rl.engines.emulated.settings import EMULATED
from tailsieve_rl.rollout.state import RunState
from tailsieve_rl.rollout.trainer import PPOTrainerTailSieve
from tailsieve_rl.rollout.verl_0_9_0 import put_coordinator
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.policies import RoutingPolicy
from tailsieve_rl.telemetry.run_files import RunFiles, outcome_line


class _KeepsWeights:
    """In the place of verl's CheckpointEngineManager: engines keep the weights that they started with, awake."""

    def sleep_replicas(self) -> None:
        """They stay awake."""

    def update_weights(self, global_steps: int) -> None:
        """There are none."""

    def remove_replicas(self, replicas: Any) -> None:
        """Nothing here would call them."""


class WithoutTraining(PPOTrainerTailSieve):
    """Engines that keep their weights, and steps that end with their responses."""

    def __init__(self, config: DictConfig):
        super().__init__(config)
        rollout, trainer = config.actor_rollout_ref.rollout, config.trainer
        nodes = (trainer.nnodes, trainer.n_gpus_per_node)
        if self._emulated:
            nodes = (1, self.setup.replicas * rollout.tensor_model_parallel_size)
        with open_dict(config):
            rollout.nnodes, rollout.n_gpus_per_node = nodes

    def _setup(self) -> None:
        self._init_tokenizer()
        self._init_dataloader()
        self.llm_server_manager = LLMServerManager.create(config=self.config)
        put_coordinator(self.config, self.llm_server_manager)
        self.checkpoint_manager = _KeepsWeights()
        self.teacher_model_manager = None
        self.global_steps, self.curr_step_profile = 0, False

    def get_reward_handles(self) -> None:
        """Nothing is scored."""

    @property
    def _emulated(self) -> bool:
        return bool(self.config.actor_rollout_ref.rollout.name == EMULATED)

    def _start(self, policy: RoutingPolicy) -> None:
        """Begin anew with a policy, on the engines as they are."""
        self.policy = policy
        self.state = RunState(Ledger(), (), policy.name, policy.start(self.setup))
        self._bind_coordinator()
        self.global_steps = 0

    def _rollout(self, step: int, groups: int, files: RunFiles, last: bool) -> None:
        """One step that consumes so many groups; nothing of it is left in the queue and in the engines' caches."""
        self.global_steps = step
        self.prepare_step()
        batch, metrics = self.replay_buffer.sample(step, "train", groups)
        self.on_sample_end()
        self.replicas = [name for name in self.replicas if name not in self._dead]
        self._keep(batch)
        tq.kv_clear(keys=batch.keys, partition_id=batch.partition_id)
        ray.get(self.coordinator.clear_caches.remote())
        outcome = self.replay_buffer.outcome
        measured = {name: metrics[f"tailsieve/{name}"] for name in ("abort_s", "emulation_lag_s")}
        line = {**outcome_line(outcome), **self._reported(), **measured, "controller_s": self._controller_s}
        files.add_step(step, outcome.records, line, last=last)

    def _keep(self, batch: KVBatchMeta) -> None:
        """What is kept of a step's responses: their lengths and times are in the outcome."""
