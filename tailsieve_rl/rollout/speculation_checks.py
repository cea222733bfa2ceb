"""What of a job's speculation can be known to be wrong from its configuration."""

from omegaconf import DictConfig

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import BLOCK as SETTINGS
from tailsieve_rl.config.settings import Settings
from tailsieve_rl.config.speculation import BLOCK, NEEDS_DRAFTER
from tailsieve_rl.engines.emulated.settings import EMULATED, emulated_settings
from tailsieve_rl.engines.vllm import draft_checks
from tailsieve_rl.input_error import InputError
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.versions import no_speculation

ROLLOUT = "actor_rollout_ref.rollout"


def check_speculation(config: DictConfig, settings: Settings, profile: DecodeModel | None) -> None:
    """Refuse drafts that engines could not make, or whose pace nobody would know.

    Args:
        config: the job's.
        settings: the trainer mode's.
        profile: of `decode_model.path`, if one is given.

    Raises:
        SettingsError: naming the key, its value and what would be right.
    """
    asked = settings.speculation
    if not asked.enabled:
        return
    depths = set(range(asked.depth + 1))
    if profile is not None and not depths <= set(profile.depths):
        right = f"has draft depths {profile.depths}, and engines draft 0 to {asked.depth}: calibrate it at all of them"
        raise SettingsError(f"{SETTINGS}.decode_model.path", settings.decode_model.path, right)
    if config.actor_rollout_ref.rollout.name == EMULATED:
        _check_emulated(config, depths)
    else:
        _check_vllm(config, settings)


def _check_emulated(config: DictConfig, depths: set[int]) -> None:
    emulated = emulated_settings(config.actor_rollout_ref.rollout.engine_kwargs)
    known = emulated.decode_model().depths
    if not depths <= set(known):
        right = f"emulated profile {emulated.profile} has draft depths {known}: give engine_kwargs.emulated.acceptance"
        raise SettingsError(f"{BLOCK}.max_depth", max(depths), f"{right} and max_depth, or a profile that has them")


def _check_vllm(config: DictConfig, settings: Settings) -> None:
    rollout, asked = config.actor_rollout_ref.rollout, settings.speculation
    if why := no_speculation():
        raise SettingsError(BLOCK, ", ".join(asked.methods), why)
    if "speculative_config" in (rollout.engine_kwargs.get("vllm") or {}):
        right = f"{BLOCK} says what drafts: give the one or the other"
        raise SettingsError(f"{ROLLOUT}.engine_kwargs.vllm.speculative_config", "...", right)
    mtp = config.actor_rollout_ref.model.get("mtp")
    if mtp and mtp.enable and mtp.enable_rollout and asked.methods != ("mtp",):
        right = f"verl drafts with MTP, {BLOCK} with {', '.join(asked.methods)}: let both say mtp, or switch it off"
        raise SettingsError("actor_rollout_ref.model.mtp.enable_rollout", True, right)
    for method in asked.methods:
        drafter = asked.drafter if method in NEEDS_DRAFTER else None
        limits = (rollout.data_parallel_size, rollout.load_format)
        try:
            draft_checks.check(method, config.actor_rollout_ref.model.path, drafter, asked.depth, (), *limits)
        except InputError as error:
            raise SettingsError(BLOCK, method, str(error)) from None
