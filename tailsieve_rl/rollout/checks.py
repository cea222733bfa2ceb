"""Everything that can be known to be wrong from the configuration alone, before Ray starts or a model loads."""

import logging
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import BLOCK, Settings, read_settings
from tailsieve_rl.engines import SERVER_MAX_CONCURRENCY
from tailsieve_rl.engines.emulated.settings import EMULATED, emulated_settings
from tailsieve_rl.rollout.forced_lengths import replayed_workload
from tailsieve_rl.rollout.policy_of import decode_model_of, starting_allocation
from tailsieve_rl.rollout.speculation_checks import check_speculation
from tailsieve_rl.rollout.teachers import check_teachers
from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.routing.room import needed_room
from tailsieve_rl.versions import untested

logger = logging.getLogger(__name__)

EVALUATION = "tailsieve_evaluation"
MODES = ("tailsieve", "tailsieve_rollout", EVALUATION)
ROLLOUTS = ("vllm", EMULATED)
OTHER_ENGINES = (
    f"must be vllm (or {EMULATED}): the cutoff aborts single requests, by id, and sees that they are gone; verl's "
    "servers of other engines can only stop all of theirs at once, and then hold back what comes after"
)
ROLLOUT_N = "__rollout_n__"
CONTROL_CALLS = 64
"""Calls of a server that are kept free for aborts, statistics and weight updates."""


def settings_block(config: DictConfig) -> Mapping[str, Any]:
    """The plain mapping under trainer.v1.tailsieve."""
    block = OmegaConf.select(config, BLOCK)
    return {} if block is None else OmegaConf.to_container(block, resolve=True)  # type: ignore[return-value]


def setup_of(config: DictConfig) -> Setup:
    """N, n and R of a verl configuration."""
    rollout = config.actor_rollout_ref.rollout
    return Setup(
        groups=config.data.train_batch_size,
        responses=rollout.n,
        replicas=replicas_of(config),
        capacity=min(rollout.max_num_seqs, SERVER_MAX_CONCURRENCY - CONTROL_CALLS),
    )


def replicas_of(config: DictConfig) -> int:
    """R, as verl's LLMServerManager counts hybrid replicas, or as emulated."""
    rollout = config.actor_rollout_ref.rollout
    if rollout.name == EMULATED:
        return emulated_settings(rollout.engine_kwargs).replicas
    ranks = rollout.tensor_model_parallel_size * rollout.data_parallel_size * rollout.pipeline_model_parallel_size
    return int(config.trainer.n_gpus_per_node * config.trainer.nnodes // ranks)


def decoded_by(config: DictConfig) -> str:
    """What step times are of: the model, or the decode profile of emulated engines."""
    rollout = config.actor_rollout_ref.rollout
    if rollout.name == EMULATED:
        return emulated_settings(rollout.engine_kwargs).profile
    return str(config.actor_rollout_ref.model.path)


def check_config(config: DictConfig) -> Settings:
    """Refuse what cannot work and warn, once, of what was not tried.

    Raises:
        SettingsError: naming the key, its value and what would be right.
    """
    settings = read_settings(settings_block(config))
    _refuse_unsupported(config)
    setup = setup_of(config)
    if setup.responses < 1:
        raise SettingsError("actor_rollout_ref.rollout.n", setup.responses, "a group has 1 response or more")
    allocation = starting_allocation(settings, setup)
    _check_room(config, settings, setup, allocation)
    _check_seeds_on_cpu(config, settings)
    _check_replay(config, settings, setup)
    check_speculation(config, settings, decode_model_of(settings))
    _check_agent_loop(config)
    check_teachers(config)
    if config.trainer.v1.trainer_mode == EVALUATION:
        _check_evaluation(config, settings)
    _warn_untried(config, settings, setup)
    return settings


def check_data(settings: Settings, setup: Setup, columns: list[str], rows: int, reserve: int) -> None:
    """Refuse a data set that this mode cannot run on.

    Args:
        settings: the trainer mode's settings.
        setup: N, n and R.
        columns: names of the data set's columns.
        rows: prompts in the data set, after verl's own filters.
        reserve: prompts that the warm-up keeps back.
    """
    if ROLLOUT_N in columns:
        raise SettingsError("data.train_files", ROLLOUT_N, "a number of responses per prompt is not supported")
    if settings.replay_lengths is not None and settings.replay_lengths not in columns:
        raise SettingsError(
            f"{BLOCK}.replay_lengths", settings.replay_lengths, f"the training data has no such column, only {columns}"
        )
    if rows - reserve < setup.groups:
        raise SettingsError(
            "data.train_batch_size",
            setup.groups,
            f"the training data has {rows} prompts, {reserve} of them reserved for the warm-up: one step of "
            f"{setup.groups} groups needs {setup.groups + reserve}; use a smaller batch, more data, or "
            f"{BLOCK}.warmup=overlaunch",
        )


def _refuse_unsupported(config: DictConfig) -> None:
    def refuse(key: str, allowed: Any, right: str) -> None:
        value = OmegaConf.select(config, key)
        if value not in (allowed if isinstance(allowed, tuple) else (allowed, None)):
            raise SettingsError(key, value, right)

    refuse("trainer.use_v1", True, "trainer mode tailsieve needs verl's V1 trainer")
    refuse("actor_rollout_ref.rollout.name", ROLLOUTS, OTHER_ENGINES)
    refuse("actor_rollout_ref.hybrid_engine", True, "mode tailsieve shares devices between trainer and rollout")
    refuse("actor_rollout_ref.rollout.disaggregation.enabled", False, "prefill/decode disaggregation is not supported")
    refuse(
        "actor_rollout_ref.rollout.full_determinism",
        False,
        f"it gives every request of a replica one seed; use {BLOCK}.sampling.seed, which gives each its own",
    )
    refuse("algorithm.filter_groups.enable", False, "DAPO group filtering is not supported in mode tailsieve")
    refuse("skip.rollout_tq.enable", False, "replaying stored rollouts is not supported in mode tailsieve")
    refuse(f"{BLOCK}.parameter_sync_step", 1, "mode tailsieve is on-policy: one update a step")
    own = "mode tailsieve brings its own and sets this key itself"
    refuse("actor_rollout_ref.rollout.router_config_path", None, own)
    refuse("actor_rollout_ref.rollout.agent.agent_loop_manager_class", None, own)
    refuse("trainer.v1.sampler.custom_sampler.path", None, own)


def _check_room(config: DictConfig, settings: Settings, setup: Setup, allocation: Allocation) -> None:
    """Uniform routing and the start must let all requests decode at once; controllers keep to what has room."""
    limit = config.actor_rollout_ref.rollout.max_num_seqs
    by_group = settings.policy == "uniform" or settings.dispatch == "group"
    cases = [(Allocation(0, 0), setup.groups)]
    if settings.policy == "two_pool" and not allocation.is_uniform:
        cases.append((allocation, setup.groups))
        if settings.warmup != "reserve":
            cases.append((Allocation(0, 0), setup.groups + allocation.q))
    needed, at = max(
        (needed_room(a, fresh, setup.responses, setup.replicas, by_group).largest, str(a)) for a, fresh in cases
    )
    if needed > limit:
        raise SettingsError(
            "actor_rollout_ref.rollout.max_num_seqs",
            limit,
            f"at allocation {at} a replica must decode {needed} requests at once "
            f"({setup.groups} groups of {setup.responses} on {setup.replicas} replicas): set it to {needed} or more",
        )
    if needed > SERVER_MAX_CONCURRENCY - CONTROL_CALLS:
        raise SettingsError(
            "data.train_batch_size",
            setup.groups,
            f"at allocation {at} a replica's server must hold {needed} calls at once; it holds "
            f"{SERVER_MAX_CONCURRENCY}, {CONTROL_CALLS} of them kept for control: use more replicas or fewer groups",
        )


def _check_seeds_on_cpu(config: DictConfig, settings: Settings) -> None:
    """A seeded request whose prompt is prefilled in pieces kills vLLM's CPU engine (engines.vllm.cpu_defaults)."""
    rollout = config.actor_rollout_ref.rollout
    length = rollout.max_model_len or config.data.max_prompt_length + config.data.max_response_length
    if (
        config.trainer.device == "cpu"
        and settings.sampling.seed is not None
        and rollout.max_num_batched_tokens < length
    ):
        raise SettingsError(
            "actor_rollout_ref.rollout.max_num_batched_tokens",
            rollout.max_num_batched_tokens,
            f"on CPU engines {BLOCK}.sampling.seed needs room for a whole sequence in one batch: {length} or more",
        )


def _check_replay(config: DictConfig, settings: Settings, setup: Setup) -> None:
    """Forced lengths must fit the model; an emulated engine has nothing else to go by."""
    if settings.replay_workload.name is not None:
        longest = replayed_workload(settings.replay_workload, setup.responses).cap
        if longest > config.data.max_response_length:
            raise SettingsError(
                "data.max_response_length",
                config.data.max_response_length,
                f"workload {settings.replay_workload.name} has responses of {longest} tokens at "
                f"replay_workload.divisor={settings.replay_workload.divisor}: allow as many, or divide by more",
            )
    if config.actor_rollout_ref.rollout.name != EMULATED:
        return
    if not settings.replays:
        right = "emulated engines have no model: give replay_lengths or replay_workload.name"
        raise SettingsError(f"{BLOCK}.replay_lengths", None, right)
    for key, off in (("trainer.val_before_train", False), ("trainer.test_freq", -1)):
        if OmegaConf.select(config, key) != off:
            raise SettingsError(
                key, OmegaConf.select(config, key), f"emulated engines cannot validate: set it to {off}"
            )


def _check_agent_loop(config: DictConfig) -> None:
    """An agent loop that nobody registered would fail in every response, after the models are loaded."""
    agent = config.actor_rollout_ref.rollout.agent
    known = {"single_turn_agent", "tool_agent"}
    if agent.agent_loop_config_path:
        loops: Any = OmegaConf.load(agent.agent_loop_config_path)
        known |= {loop.name for loop in loops}
    if agent.default_agent_loop not in known:
        raise SettingsError(
            "actor_rollout_ref.rollout.agent.default_agent_loop",
            agent.default_agent_loop,
            f"no such agent loop; known are {', '.join(sorted(known))} (more by agent_loop_config_path)",
        )


def _check_evaluation(config: DictConfig, settings: Settings) -> None:
    """What is evaluated must be the model's own responses to every prompt."""
    if settings.warmup == "reserve":
        raise SettingsError(f"{BLOCK}.warmup", settings.warmup, "its prompts would not be answered: use overlaunch")
    rollout = config.actor_rollout_ref.rollout.name
    if settings.replays or rollout == EMULATED:
        right = "responses of forced lengths cannot be evaluated: use real engines, and no replay_lengths"
        raise SettingsError("actor_rollout_ref.rollout.name", rollout, right)


def _warn_untried(config: DictConfig, settings: Settings, setup: Setup) -> None:
    for line in untested():
        logger.warning("%s", line)
    model, profile = config.actor_rollout_ref.model.path, decode_model_of(settings)
    if profile is not None and profile.model.lower() not in str(model).lower():
        logger.warning("%s.decode_model.path is a profile of %s, the model is %s", BLOCK, profile.model, model)
    if setup.replicas < 2:
        logger.warning("one rollout replica: there are no pools to route between, every step is uniform")
    adaptive = settings.policy == "two_pool" and settings.controller.name != "fixed"
    agent = config.actor_rollout_ref.rollout.agent.default_agent_loop
    if adaptive and settings.decode_model.source == "online" and agent != "single_turn_agent":
        logger.warning(
            "agent loop %s: the online decode model counts a response's waiting between turns as decoding; "
            "%s.decode_model.source=file avoids it",
            agent,
            BLOCK,
        )
    rollout_model = config.actor_rollout_ref.model
    tried = {
        "LoRA": bool(rollout_model.get("lora_rank", 0) or (rollout_model.get("lora") or {}).get("rank", 0)),
        "a critic": config.algorithm.adv_estimator == "gae",
        "Megatron": config.actor_rollout_ref.actor.strategy == "megatron",
        "data parallel replicas": config.actor_rollout_ref.rollout.data_parallel_size > 1,
    }
    for name, used in tried.items():
        if used:
            logger.warning("trainer mode tailsieve was not tested with %s", name)
