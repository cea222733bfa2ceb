"""The DAPO linear overlength penalty (paper A.3), through verl's own DAPO reward manager.

The penalty of a response of L tokens is 0 up to `free_tokens`, then grows linearly to `factor` at `max_tokens`:
8192 and 16384 tokens in the paper, that is 0.125 for each further 1024 tokens, and 1.0 at the limit. verl subtracts it
from the reward; `acc` stays the unpenalised score. Validation rewards are penalised too.

verl names it `reward.reward_manager.name=dapo` and reads four keys below `reward.reward_kwargs` that are not in its
YAML and that no one checks: a manager of another name ignores them in silence. This module writes and checks them.
"""

import math
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from tailsieve_rl.config.blocks import SettingsError

MANAGER = "dapo"
KWARGS = "reward.reward_kwargs"
BUFFER = f"{KWARGS}.overlong_buffer_cfg"


@dataclass(frozen=True, slots=True)
class OverlengthSettings:
    """The penalty in force.

    Attributes:
        free_tokens: response tokens without a penalty.
        max_tokens: response tokens at which the penalty reaches `factor`: the response limit.
        factor: reward units.
    """

    free_tokens: int
    max_tokens: int
    factor: float


def overlength_overrides(
    free_tokens: int = 8192, max_tokens: int = 16384, factor: float = 1.0
) -> dict[str, str | int | float | bool]:
    """Return the command-line overrides, key to value, that switch the penalty on in any verl job.

    The defaults are the paper's. `"KEY=VALUE"` of each item is an argument of `verl.trainer.main_ppo`.
    """
    if not 0 <= free_tokens < max_tokens:
        raise ValueError(f"free_tokens={free_tokens}: must be at least 0 and less than max_tokens={max_tokens}")
    if not (math.isfinite(factor) and factor > 0):
        raise ValueError(f"factor={factor}: must be a positive number")
    return {
        "data.max_response_length": max_tokens,
        "reward.reward_manager.name": MANAGER,
        f"++{KWARGS}.max_resp_len": max_tokens,
        f"++{BUFFER}.enable": True,
        f"++{BUFFER}.len": max_tokens - free_tokens,
        f"++{BUFFER}.penalty_factor": factor,
        f"++{BUFFER}.log": True,
    }


def validate_overlength(config: DictConfig) -> OverlengthSettings | None:
    """Check the penalty's settings in a job's whole configuration.

    Returns:
        The penalty in force, or None if there is none.

    Raises:
        SettingsError: with the key, its value and what would be right.
    """
    kwargs = config.reward.get("reward_kwargs") or {}
    buffer = kwargs.get("overlong_buffer_cfg")
    if buffer is None:
        return None
    for key in ("enable", "log"):
        if not isinstance(buffer.get(key), bool):
            raise SettingsError(f"{BUFFER}.{key}", buffer.get(key), "must be true or false")
    if not buffer.enable:
        return None
    manager = config.reward.reward_manager
    if manager.source != "register" or manager.name != MANAGER:
        right = f"must be {MANAGER}, with source=register: any other manager ignores the overlength penalty"
        raise SettingsError("reward.reward_manager.name", manager.name, right)
    max_tokens = _tokens(f"{KWARGS}.max_resp_len", kwargs.get("max_resp_len"))
    if max_tokens != config.data.max_response_length:
        right = f"must equal data.max_response_length={config.data.max_response_length}"
        raise SettingsError(f"{KWARGS}.max_resp_len", max_tokens, right)
    penalised = _tokens(f"{BUFFER}.len", buffer.get("len"))
    if penalised > max_tokens:
        raise SettingsError(f"{BUFFER}.len", penalised, f"must be at most {KWARGS}.max_resp_len={max_tokens}")
    factor = buffer.get("penalty_factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not (math.isfinite(factor) and factor > 0):
        raise SettingsError(f"{BUFFER}.penalty_factor", factor, "must be a positive number")
    return OverlengthSettings(max_tokens - penalised, max_tokens, float(factor))


def _tokens(key: str, value: Any) -> int:
    """Return a number of tokens, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(key, value, "must be a positive whole number of tokens")
    return value
