"""Trainer mode `tailsieve_rollout`: the rollouts of mode `tailsieve` without the training, policy after policy.

Its coordinator, client, agent loops, sampler and queue, and nothing else: no ranks that train, no weight updates, no
rewards. Benchmarks run on it.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf, open_dict
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.workers.rollout.llm_server import LLMServerManager

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.rollout_only import BLOCK, PolicyRun, read_rollout_only
from tailsieve_rl.config.settings import BLOCK as SETTINGS
from tailsieve_rl.config.speculation import SpeculationSettings
from tailsieve_rl.engines.emulated.settings import EMULATED, emulated_settings
from tailsieve_rl.rollout.policy_of import decode_model_of, make_policy, starting_allocation
from tailsieve_rl.rollout.state import RunState
from tailsieve_rl.rollout.trainer import PPOTrainerTailSieve
from tailsieve_rl.rollout.verl_0_9_0 import put_coordinator
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.policies import RoutingPolicy
from tailsieve_rl.routing.policies.held import Held
from tailsieve_rl.routing.policies.named import (
    ADAPTS,
    NEEDS_LENGTHS,
    OURS,
    ROUTE_DEPTH,
    SCHEDULES,
    drafts,
    named_policy,
    uniform_depth,
)
from tailsieve_rl.telemetry.run_files import outcome_line

MODE = "tailsieve_rollout"


class _KeepsWeights:
    """In the place of verl's CheckpointEngineManager: engines keep the weights that they started with, awake."""

    def sleep_replicas(self) -> None:
        """They stay awake."""

    def update_weights(self, global_steps: int) -> None:
        """There are none."""


@register_trainer(MODE)
class RolloutOnlyTrainer(PPOTrainerTailSieve):
    """Runs the policies of `trainer.v1.tailsieve_rollout` one after the other on the same engines and prompts."""

    def __init__(self, config: DictConfig):
        self.compared = read_rollout_only(OmegaConf.select(config, BLOCK))
        super().__init__(config)
        self._check_policies()
        rollout, trainer = config.actor_rollout_ref.rollout, config.trainer
        nodes = (trainer.nnodes, trainer.n_gpus_per_node)
        if self._emulated:
            nodes = (1, self.setup.replicas * rollout.tensor_model_parallel_size)
        with open_dict(config):
            rollout.nnodes, rollout.n_gpus_per_node = nodes

    def _check_policies(self) -> None:
        told = [name for name in self.compared.policies if name in NEEDS_LENGTHS]
        if told and not self.settings.replays:
            right = f"{', '.join(told)} must be told the lengths: give replay_lengths or replay_workload.name"
            raise SettingsError(f"{BLOCK}.policies", list(self.compared.policies), right)
        if "graded_oracle" in told and self._model() is None:
            raise SettingsError(f"{SETTINGS}.decode_model.path", None, "graded_oracle needs a decode profile")
        self._check_drafting()

    def _check_drafting(self) -> None:
        """Policies that draft need engines that do, as deep as they ask for, and schedules a profile of all depths."""
        deepest, model = self.settings.speculation.depth, self._model()
        for name in self.compared.policies:
            if drafts(name) and not self.settings.speculation.enabled:
                right = f"{name} drafts: give tail.method and max_depth"
                raise SettingsError(f"{SETTINGS}.speculation", None, right)
            if (uniform_depth(name) or 0) > deepest:
                right = f"engines draft at most speculation.max_depth = {deepest} tokens"
                raise SettingsError(f"{BLOCK}.policies", name, right)
            if name in SCHEDULES and (model is None or not set(range(deepest + 1)) <= set(model.depths)):
                right = f"{name} needs a decode profile with draft depths 0 to {deepest} (tailsieve calibrate)"
                raise SettingsError(f"{SETTINGS}.decode_model.path", self.settings.decode_model.path, right)

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

    def fit(self, agent_loop_manager: Any) -> None:
        """Run every policy; each writes its result files to a folder of its own."""
        self.agent_loop_manager = agent_loop_manager
        for run in self.compared.runs():
            started = time.monotonic()
            self._run(run)
            print(f"{run.name}: steps {run.first} to {run.last} in {time.monotonic() - started:.0f} s", flush=True)

    def _run(self, run: PolicyRun) -> None:
        self.policy = self._policy(run.policy)
        if run.policy in ADAPTS:
            self.policy = Held(self.policy, self.compared.converge)
        self.state = RunState(Ledger(), (), self.policy.name, self.policy.start(self.setup))
        self._bind_coordinator()
        self.global_steps = 0
        # Engines refuse the uids of aborted requests, so that each run has its own.
        self.train_dataloader = self._prompt_stream(f"{run.name}/")
        self.train_dataloader.draw((run.first - 1) * self.setup.groups)
        files = self._run_files(str(Path(self.compared.output_dir) / run.name))
        self.on_train_begin()
        for step in range(run.first, run.last + 1):
            self.global_steps = step
            self.prepare_step()
            batch, metrics = self.replay_buffer.sample(step, "train", self.setup.groups)
            self.on_sample_end()
            tq.kv_clear(keys=batch.keys, partition_id=batch.partition_id)
            ray.get(self.coordinator.clear_caches.remote())
            outcome = self.replay_buffer.outcome
            measured = {name: metrics[f"tailsieve/{name}"] for name in ("abort_s", "emulation_lag_s")}
            line = {**outcome_line(outcome), **self._reported(), **measured, "controller_s": self._controller_s}
            files.add_step(step, outcome.records, line, last=step == run.last)

    def _policy(self, name: str) -> RoutingPolicy:
        """`tailsieve` is what the settings say, without speculation; the others have their defaults."""
        if name == OURS:
            return make_policy(replace(self.settings, speculation=SpeculationSettings()), self.setup)
        if name == ROUTE_DEPTH:
            return make_policy(self.settings, self.setup)
        start = starting_allocation(self.settings, self.setup)
        model = self._model() if name in NEEDS_LENGTHS | SCHEDULES else decode_model_of(self.settings)
        if (
            model is not None and name in SCHEDULES and not self._emulated
        ):  # recurrent models cannot end drafts by the batch size
            model = replace(model, points=tuple(point for point in model.points if point.draft_depth))
        return named_policy(name, self.setup, start, model, self.settings.speculation.depth)

    def _model(self) -> DecodeModel | None:
        """What an oracle may know: the profile that is named, or the one that emulated engines decode by."""
        rollout = self.config.actor_rollout_ref.rollout
        given = decode_model_of(self.settings)
        return emulated_settings(rollout.engine_kwargs).decode_model() if given is None and self._emulated else given

    @property
    def _emulated(self) -> bool:
        return bool(self.config.actor_rollout_ref.rollout.name == EMULATED)

    def on_train_begin(self) -> None:
        """The warm-up: emulated engines need none, but policies that isolate groups from the start do."""
        if self.policy.initial(self.state.policy_state).q or not self._emulated:
            super().on_train_begin()

    def _reserve(self) -> int:
        """Kept back for every policy, so that all of them draw the same prompts."""
        return self.setup.groups if self.settings.warmup == "reserve" else 0

    def _is_last_step(self) -> bool:
        """Every step leaves groups over, as in the middle of a run."""
        return False
