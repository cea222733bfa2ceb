"""Trainer mode `tailsieve`: verl's synchronous V1 trainer, with each step planned, dispatched and booked by TailSieve.

One step reads from top to bottom: prepare_step plans and dispatches, verl samples and trains, on_sample_end books.
"""

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray
import torch
import transfer_queue as tq
from omegaconf import DictConfig, open_dict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.utils import create_rl_sampler
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from tailsieve_rl.algorithms.overlength import validate_overlength
from tailsieve_rl.algorithms.settings import normalise_algorithm
from tailsieve_rl.engines.emulated.replica import launch_replicas
from tailsieve_rl.engines.emulated.settings import EMULATED, emulated_settings
from tailsieve_rl.rollout.checks import check_config, check_data, decoded_by, setup_of
from tailsieve_rl.rollout.client import TailSieveClient
from tailsieve_rl.rollout.context import ATTEMPT, LENGTHS, SESSIONS
from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.rollout.forced_lengths import ForcedLengths
from tailsieve_rl.rollout.policy_of import make_policy, starting_allocation
from tailsieve_rl.rollout.prompt_stream import Prompt, PromptStream
from tailsieve_rl.rollout.sampler import TailSieveSampler
from tailsieve_rl.rollout.speculation import start_with_drafts
from tailsieve_rl.rollout.state import RunState, continues, load_state, save_state
from tailsieve_rl.rollout.verl_0_9_0 import PreparedSteps, put_coordinator, reads_router_file
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import StepPlan, fresh_groups, plan_step
from tailsieve_rl.telemetry.run_files import RunFiles, outcome_line, truncated_fraction

logger = logging.getLogger(__name__)

ROUTER_FILE = os.path.join(os.path.dirname(__file__), "router.yaml")
MANAGER = "tailsieve_rl.rollout.manager.TailSieveAgentLoopManager"


@register_trainer("tailsieve")
class PPOTrainerTailSieve(PreparedSteps):
    """verl's PPOTrainerSync with cross-round tail routing (paper 3.1): trainer.v1.trainer_mode=tailsieve."""

    def __init__(self, config: DictConfig):
        self.settings = check_config(config)
        self.setup = setup_of(config)
        self.policy = make_policy(self.settings, self.setup)
        normalise_algorithm(config)
        validate_overlength(config)
        with open_dict(config):
            if reads_router_file(config):
                config.actor_rollout_ref.rollout.router_config_path = ROUTER_FILE
            config.actor_rollout_ref.rollout.agent.agent_loop_manager_class = MANAGER
            start_with_drafts(config, self.settings.speculation, starting_allocation(self.settings, self.setup).m)
        super().__init__(config)
        # Between steps the queue holds nothing of ours, so verl's queue checkpoint and its re-issue of unfinished
        # prompts, which it does in every mode but "sync", have nothing to save: our own state says what is left over.
        self.trainer_mode = "sync"
        self.state = RunState(Ledger(), (), self.policy.name, self.policy.start(self.setup))
        self._prompts: dict[str, Prompt] = {}
        self._controller_s = 0.0
        self._report: Mapping[str, float] = {}
        self._warmup_s = 0.0
        self._stale_pools = 0.0
        self._saved_step: int | None = None
        self._dead: set[str] = set()

    # ------------------------------------------------------------------ set-up

    def _build_replay_buffer(self) -> TailSieveSampler:
        sampler = self.config.trainer.v1.sampler
        return TailSieveSampler(
            trainer_mode=self.trainer_mode,
            trainer_config=self.config.trainer.v1.get(self.trainer_mode, {}),
            max_off_policy_threshold=sampler.max_off_policy_threshold,
            max_off_policy_strategy=sampler.max_off_policy_strategy,
            sampler_kwargs=sampler.sampler_kwargs,
        )

    def _init_dataloader(self) -> None:
        """verl's data sets, with a stream of exact draws in the place of its loader, and epochs without the reserve."""
        super()._init_dataloader()
        columns = list(self.train_dataset[0]) if len(self.train_dataset) else []
        check_data(self.settings, self.setup, columns, len(self.train_dataset), self._reserve())
        if self.settings.replays:
            self._forced_lengths = ForcedLengths(
                self.settings, self.setup.responses, self.train_dataset, self.config.data.max_response_length
            )
        self.train_dataloader = self._prompt_stream()
        self.steps_per_epoch = self.train_dataloader.epoch_prompts // self.setup.groups
        if self.config.trainer.total_training_steps is None:
            self.total_training_steps = self.steps_per_epoch * self.config.trainer.total_epochs
            with open_dict(self.config):
                self.config.actor_rollout_ref.actor.optim.total_training_steps = self.total_training_steps

    def _prompt_stream(self, name: str = "") -> PromptStream:
        order = create_rl_sampler(self.config.data, self.train_dataset)
        return PromptStream(self.train_dataset, order, collate_fn, self._reserve(), name)

    def _reserve(self) -> int:
        """Prompts kept back for the warm-up."""
        starts_with_tail = self.policy.initial(self.state.policy_state).q > 0
        return self.setup.groups if self.settings.warmup == "reserve" and starts_with_tail else 0

    def _init_tokenizer(self) -> None:
        super()._init_tokenizer()
        if self.processor is not None:
            logger.warning("trainer mode tailsieve was not tested with vision models")

    def _setup(self) -> None:
        super()._setup()
        put_coordinator(self.config, self.llm_server_manager)
        self._add_emulated_replicas()
        self._bind_coordinator()
        self.files = self._run_files(self.settings.output_dir or self.config.trainer.default_local_dir)

    def _add_emulated_replicas(self) -> None:
        """verl starts one replica a rank; an emulated job may have more of them than ranks."""
        manager = self.llm_server_manager
        first = len(manager.get_replicas())
        if self.config.actor_rollout_ref.rollout.name != EMULATED or first >= self.setup.replicas:
            return
        more = launch_replicas(self.config, range(first, self.setup.replicas))
        manager.rollout_replicas.extend(more)
        self.checkpoint_manager.replicas = manager.get_replicas()
        ray.get(manager.global_load_balancer.add_servers.remote({r.server_address: r.server_handle for r in more}))

    def _bind_coordinator(self) -> None:
        self.coordinator = self.llm_server_manager.global_load_balancer
        rollout = self.config.actor_rollout_ref.rollout
        emulated = emulated_settings(rollout.engine_kwargs).time_scale if rollout.name == EMULATED else None
        limits = (self.settings.retries, self.settings.watchdog_s)
        drafts = self.settings.speculation.enabled
        self.replicas = ray.get(self.coordinator.configure.remote(self.policy, *limits, emulated, drafts))
        self.replay_buffer.bind(self.coordinator)

    def _run_files(self, out: str) -> RunFiles:
        return RunFiles(
            out,
            mode="tailsieve",
            backend=self.config.actor_rollout_ref.rollout.name,
            groups=self.setup.groups,
            responses=self.setup.responses,
            model=decoded_by(self.config),
            resumed_after=self.global_steps,
        )

    def get_llm_client(self) -> TailSieveClient:
        return self.llm_server_manager.get_client(client_cls=TailSieveClient)

    # ------------------------------------------------------------------ one step

    def on_train_begin(self) -> None:
        if self.state.ledger.drawn == 0 and self.train_dataloader.reserved():
            self._warm_up()

    def prepare_step(self) -> dict[str, float]:
        """Plan the step, draw its fresh prompts, dispatch everything."""
        started = time.perf_counter()
        tail = self.state.tail
        decision = self.policy.decide(self.state.policy_state, len(tail))
        self._report = self.policy.report(self.state.policy_state)
        groups, q_next = self._size(decision.q_next)
        self._controller_s = time.perf_counter() - started
        fresh = self.train_dataloader.draw(fresh_groups(groups, len(tail), q_next))
        plan = plan_step(
            step=self.global_steps,
            responses=self.setup.responses,
            tail=[(group.uid, group.attempt + 1) for group in self.state.ledger.tail],
            fresh=[prompt.uid for prompt in fresh],
            q_next=q_next,
            m=decision.m,
            replicas=self.replicas,
            depths=decision.depths,
        )
        self._dispatch(plan, [*tail, *fresh], started)
        return {}

    def on_sample_end(self) -> None:
        self._leave_out_dead_replicas()
        super().on_sample_end()
        outcome = self.replay_buffer.outcome
        started = time.perf_counter()
        policy_state = self.policy.observe(self.state.policy_state, outcome)
        self._controller_s += time.perf_counter() - started
        self._warn_of_stale_drafts(policy_state)
        self._book(outcome, policy_state)

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, float]) -> KVBatchMeta:
        """One policy update; when its rollout cannot be completed, nothing of it counts and the run stops."""
        before, stream_before = self.state, self.train_dataloader.state_dict()
        try:
            batch = super().step(metrics, timing_raw)
        except StepFailed:
            self.state = before
            self.train_dataloader.rewind(stream_before)
            self.global_steps -= 1
            self._save_unless_saved()
            raise
        self._write_results(batch)
        return batch

    def on_step_end(self) -> None:
        """Update the engines' weights. If an engine is gone, save the finished step and stop: verl would call it."""
        if self._dead:
            self._save_unless_saved()
            raise StepFailed(
                f"replica {', '.join(sorted(self._dead))} died in step {self.global_steps}; the step was "
                f"completed on the others and saved in {self._checkpoint_folder()}: trainer.resume_mode=auto goes on"
            )
        super().on_step_end()

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], timing_raw: dict[str, float], global_steps: int, epoch: int
    ) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, global_steps, epoch)
        metrics.update({f"tailsieve/{name}": value for name, value in self._reported().items()})
        metrics["tailsieve/truncated_fraction"] = self._truncated()
        metrics["tailsieve/tail_age_max"] = self.state.ledger.tail_age_max
        metrics["tailsieve/controller_ms"] = 1e3 * self._controller_s
        if self._warmup_s:
            metrics["tailsieve/warmup_s"], self._warmup_s = self._warmup_s, 0.0

    # ------------------------------------------------------------------ inside

    def _reported(self) -> dict[str, float]:
        """What the controller had said before the step, and how far its prediction was off."""
        report = dict(self._report)
        if report.get("predicted_s"):
            report["prediction_error"] = self.replay_buffer.outcome.gen_time_s / report["predicted_s"] - 1.0
        return report

    def _truncated(self) -> float:
        """verl's response_length/clip_ratio counts, in its V1 trainer, responses as long as the batch's longest."""
        return truncated_fraction(self.replay_buffer.outcome.lengths, self.config.data.max_response_length)

    def _warn_of_stale_drafts(self, policy_state: Any) -> None:
        stale = self.policy.report(policy_state).get("stale_pools", 0.0)
        if stale > self._stale_pools:
            logger.warning(
                "step %d: fewer than %g of the first drafts were accepted in a pool: the drafter does not know this "
                "policy, and the pool drafts no more in this run; tailsieve/stale_pools counts them",
                self.global_steps,
                self.settings.speculation.min_acceptance,
            )
        self._stale_pools = stale

    def _leave_out_dead_replicas(self) -> None:
        """verl would put them to sleep like the others."""
        self._dead = set(self.replicas) - set(ray.get(self.coordinator.alive.remote()))
        gone = [r for r in self.llm_server_manager.get_replicas() if r.server_address in self._dead]
        if gone:
            self.checkpoint_manager.remove_replicas(gone)

    def _write_results(self, batch: KVBatchMeta) -> None:
        """Before the step's checkpoint, so that a run that is resumed from it has the step in its files."""
        rows = [(key, tag) for key, tag in zip(batch.keys, batch.tags, strict=True) if not tag.get("is_padding", False)]
        scores = tq.kv_batch_get([key for key, _ in rows], batch.partition_id, ["rm_scores"])["rm_scores"]
        version = self.global_steps - 1  # verl numbers the weights of step t as t - 1
        stale = sum((tag["min_global_steps"], tag["max_global_steps"]) != (version, version) for _, tag in rows)
        outcome = self.replay_buffer.outcome
        self.files.add_step(
            self.global_steps,
            outcome.records,
            {
                **outcome_line(outcome),
                **self._reported(),
                "truncated_fraction": self._truncated(),
                "reward_mean": float(sum(row.sum() for row in scores.unbind()) / len(rows)),
                "off_policy_trajectories": stale,
            },
            last=self._is_last_step(),
        )

    def _warm_up(self) -> None:
        """One rollout of the reserved prompts on all replicas; its slowest groups are the first step's tail set."""
        started = time.perf_counter()
        prompts = self.train_dataloader.reserved()
        plan = plan_step(
            step=0,
            responses=self.setup.responses,
            tail=[],
            fresh=[prompt.uid for prompt in prompts],
            q_next=self.policy.initial(self.state.policy_state).q,
            m=0,
            replicas=self.replicas,
        )
        self._dispatch(plan, prompts, started)
        outcome, _ = self.replay_buffer.wait_step()
        self._book(outcome, self.state.policy_state, discard=True)
        tq.kv_clear(keys=list(tq.kv_list("train").get("train", {})), partition_id="train")
        ray.get(self.coordinator.clear_caches.remote())
        self._warmup_s = time.perf_counter() - started

    def _dispatch(self, plan: StepPlan, prompts: list[Prompt], started: float) -> None:
        self._prompts = {prompt.uid: prompt for prompt in prompts}
        ledger = self.state.ledger.begin(plan)
        self.state = RunState(ledger, (), self.policy.name, self.state.policy_state)
        ordered = [self._prompts[group.uid] for group in plan.groups]
        batch_dict = self.train_dataloader.collate(ordered)
        batch_dict["uid"] = np.array([prompt.uid for prompt in ordered], dtype=object)
        batch_dict[ATTEMPT] = torch.tensor([group.attempt for group in plan.groups])
        lengths = None
        if self.settings.replays:
            lengths = self._forced_lengths.of(ordered, [group.attempt for group in plan.groups], plan.step)
            batch_dict[LENGTHS] = torch.tensor(list(lengths.values()))
        batch = tu.get_tensordict(batch_dict)
        tu.assign_non_tensor_data(batch, "global_steps", self._policy_update(plan))
        tu.assign_non_tensor_data(batch, SESSIONS, plan.responses)
        index = {prompt.uid: prompt.index for prompt in ordered}
        elapsed_s = time.perf_counter() - started
        ray.get(self.coordinator.begin_step.remote(plan, index, elapsed_s, lengths))
        self.agent_loop_manager.generate_sequences(batch)

    def _book(self, outcome: StepOutcome, policy_state: Any, discard: bool = False) -> None:
        consumed = [group.uid for group in outcome.consumed]
        ledger = self.state.ledger.finish(outcome.plan.step, consumed, outcome.candidates, discard)
        ledger.check()
        tail = tuple(self._prompts[group.uid] for group in ledger.tail)
        self.state = RunState(ledger, tail, self.policy.name, policy_state)

    def _size(self, q_next: int) -> tuple[int, int]:
        """Groups that the coming step consumes, and leaves over where the policy wants to leave over q_next."""
        starts_without = self.state.ledger.drawn == 0 and self.settings.warmup == "none"
        return self.setup.groups, 0 if self._is_last_step() or starts_without else q_next

    def _policy_update(self, plan: StepPlan) -> int:
        """The update that a step's requests are for: with the prompt it decides their seeds."""
        return plan.step

    def _is_last_step(self) -> bool:
        by_epochs = self.steps_per_epoch * self.config.trainer.total_epochs
        return self.global_steps >= min(self.total_training_steps, by_epochs)

    # ------------------------------------------------------------------ checkpoints

    def _checkpoint_folder(self) -> str:
        return os.path.join(self.config.trainer.default_local_dir, f"global_step_{self.global_steps}")

    def _save_checkpoint(self) -> None:
        """Ours first: verl marks a checkpoint as the latest only when all of it is written."""
        save_state(self._checkpoint_folder(), self.state)
        super()._save_checkpoint()
        self._saved_step = self.global_steps
        self.files.flush()

    def _save_unless_saved(self) -> None:
        if self._saved_step != self.global_steps:
            self._save_checkpoint()

    def _load_checkpoint(self) -> None:
        super()._load_checkpoint()
        resume = self.config.trainer.resume_mode
        folder = self.config.trainer.resume_from_path if resume == "resume_path" else self._checkpoint_folder()
        if resume == "disable" or not os.path.isdir(folder):
            return
        self._saved_step = self.global_steps
        state = load_state(folder)
        if state is None:
            self._take_over()
            return
        if not continues(state, self.policy, self.setup):
            logger.warning("policy %s cannot continue the state of %s: it starts anew", self.policy.name, state.policy)
            state = RunState(state.ledger, state.tail, self.policy.name, self.policy.start(self.setup))
        self.state = state

    def _take_over(self) -> None:
        """Go on from a checkpoint of verl's synchronous trainer, which consumed N prompts a step in the same order."""
        per_epoch = len(self.train_dataset) // self.setup.groups
        epoch, step = divmod(self.global_steps, per_epoch)
        logger.warning(
            "the checkpoint of step %d was written by another trainer mode: going on in epoch %d after %d prompts",
            self.global_steps,
            epoch,
            step * self.setup.groups,
        )
        self.train_dataloader.seek(epoch, step * self.setup.groups)
