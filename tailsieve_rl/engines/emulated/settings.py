"""Settings of emulated engines, under `actor_rollout_ref.rollout.engine_kwargs.emulated`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tailsieve_rl.config.blocks import SettingsError, build_block
from tailsieve_rl.routing.decode_model import DecodeModel, ProfileError, load_profile
from tailsieve_rl.simulation.profiles import PROFILES
from tailsieve_rl.simulation.profiles.speculation import modelled

EMULATED = "emulated"
BLOCK = "actor_rollout_ref.rollout.engine_kwargs.emulated"


@dataclass(frozen=True, slots=True)
class EmulatedSettings:
    """What is emulated.

    Attributes:
        replicas: R, however many ranks train.
        profile: a decode profile: the name of a shipped one (modelled H100), or a file that `calibrate` wrote.
        acceptance: chance that a draft of the model's MTP head is accepted, given that those before it were; with it a
            shipped profile has draft depths up to `max_depth`, modelled like the rest of it.
        max_depth: deepest draft.
        time_scale: seconds of wall time that an emulated second takes.
        stretch: tokens that are decoded for each token of a response: short responses, which the job can handle on a
            laptop, take the time of long ones.
    """

    replicas: int = 8
    profile: str = "qwen3.5-4b"
    acceptance: float | None = None
    max_depth: int = 0
    time_scale: float = 0.05
    stretch: int = 1

    def __post_init__(self) -> None:
        for name in ("replicas", "stretch"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{BLOCK}.{name}", getattr(self, name), "must be 1 or more")
        if not (isfinite(self.time_scale) and self.time_scale > 0):
            raise SettingsError(f"{BLOCK}.time_scale", self.time_scale, "must be a positive number")
        if self.acceptance is not None and not 0 <= self.acceptance <= 1:
            raise SettingsError(f"{BLOCK}.acceptance", self.acceptance, "must be between 0 and 1")
        if (self.acceptance is None) != (self.max_depth == 0) or self.max_depth < 0:
            right = "must be 1 or more with acceptance, and 0 without"
            raise SettingsError(f"{BLOCK}.max_depth", self.max_depth, right)
        self.decode_model()

    def decode_model(self) -> DecodeModel:
        """The profile.

        Raises:
            SettingsError: if there is no such profile or it cannot be read.
        """
        if self.profile in PROFILES:
            return modelled(self.profile, self.acceptance, self.max_depth)
        if self.acceptance is not None:
            right = "is for shipped profiles; a measured one has the draft depths that it was calibrated at"
            raise SettingsError(f"{BLOCK}.acceptance", self.acceptance, right)
        if not Path(self.profile).is_file():
            right = f"must be a decode profile's file, or one of {', '.join(PROFILES)}"
            raise SettingsError(f"{BLOCK}.profile", self.profile, right)
        try:
            return load_profile(self.profile)
        except ProfileError as error:
            raise SettingsError(f"{BLOCK}.profile", self.profile, str(error)) from None


def emulated_settings(engine_kwargs: Mapping[str, Any] | None) -> EmulatedSettings:
    """Read the block from a rollout configuration's `engine_kwargs`; a missing block means all defaults.

    Raises:
        SettingsError: naming the key, the value and what would be right.
    """
    settings: EmulatedSettings = build_block(EmulatedSettings, (engine_kwargs or {}).get(EMULATED) or {}, BLOCK)
    return settings
