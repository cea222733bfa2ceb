"""Trainer mode `tailsieve_rollout`: policy after policy without training. Benchmarks run on it."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from verl.trainer.ppo.v1.trainer_base import register_trainer

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.rollout_only import BLOCK, PolicyRun, read_rollout_only
from tailsieve_rl.config.settings import BLOCK as SETTINGS
from tailsieve_rl.config.speculation import SpeculationSettings
from tailsieve_rl.engines.emulated.settings import emulated_settings
from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.rollout.policy_of import decode_model_of, make_policy, profile_at, starting_allocation
from tailsieve_rl.rollout.without_training import WithoutTraining
from tailsieve_rl.routing.decode_model import DecodeModel
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

MODE = "tailsieve_rollout"


@register_trainer(MODE)
class RolloutOnlyTrainer(WithoutTraining):
    """Runs the policies of `trainer.v1.tailsieve_rollout` one after the other on the same engines and prompts."""

    def __init__(self, config: DictConfig):
        self.compared = read_rollout_only(OmegaConf.select(config, BLOCK))
        super().__init__(config)
        self._check_policies()

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
                raise SettingsError(f"{BLOCK}.profile", self.compared.profile, right)

    def fit(self, agent_loop_manager: Any) -> None:
        """Run every policy; each writes its result files to a folder of its own."""
        self.agent_loop_manager = agent_loop_manager
        for run in self.compared.runs():
            started = time.monotonic()
            self._run(run)
            print(f"{run.name}: steps {run.first} to {run.last} in {time.monotonic() - started:.0f} s", flush=True)

    def _run(self, run: PolicyRun) -> None:
        policy = self._policy(run.policy)
        self._start(Held(policy, self.compared.converge) if run.policy in ADAPTS else policy)
        # Engines refuse the uids of aborted requests, so that each run has its own.
        self.train_dataloader = self._prompt_stream(f"{run.name}/")
        self.train_dataloader.draw((run.first - 1) * self.setup.groups)
        files = self._run_files(str(Path(self.compared.output_dir) / run.name))
        self.on_train_begin()
        for step in range(run.first, run.last + 1):
            self._rollout(step, self.setup.groups, files, last=step == run.last)
            if self._dead:
                raise StepFailed(f"replica {', '.join(self._dead)} died: nothing can be compared on the others")

    def _policy(self, name: str) -> RoutingPolicy:
        """`tailsieve` is what the settings say, without speculation; the others have their defaults."""
        if name == OURS:
            return make_policy(replace(self.settings, speculation=SpeculationSettings()), self.setup)
        if name == ROUTE_DEPTH:
            return make_policy(self.settings, self.setup)
        start = starting_allocation(self.settings, self.setup)
        model = self._model() if name in NEEDS_LENGTHS | SCHEDULES else decode_model_of(self.settings)
        exact = self._emulated or self.config.trainer.device == "cpu"
        if model is not None and name in SCHEDULES and not exact:  # see DraftDepth.keep_states_right
            model = replace(model, points=tuple(point for point in model.points if point.draft_depth))
        return named_policy(name, self.setup, start, model, self.settings.speculation.depth)

    def _model(self) -> DecodeModel | None:
        """What an oracle may know: the profile that is named, or the one that emulated engines decode by."""
        rollout = self.config.actor_rollout_ref.rollout
        given = profile_at(f"{BLOCK}.profile", self.compared.profile) or decode_model_of(self.settings)
        return emulated_settings(rollout.engine_kwargs).decode_model() if given is None and self._emulated else given

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
