"""What `tailsieve bench` compares: the block `bench` beside verl's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailsieve_rl.config.blocks import SettingsError, build_block
from tailsieve_rl.simulation.profiles import PROFILES
from tailsieve_rl.simulation.workloads import Coarse, named_workload

BLOCK = "bench"
BACKENDS = ("simulated", "emulated", "vllm")
SAMPLED = "sampled"
"""The workload of the responses that the model gives, under the job's sampling settings; on real engines."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """A cell is one model with one workload; all its policies see the same prompts, lengths and replicas.

    Policies, converging steps and measured rounds are settings of the rollouts: `trainer.v1.tailsieve_rollout`.

    Attributes:
        backend: "simulated" (virtual time), "emulated" (the real job on emulated engines), "vllm" (real engines).
        models: decode profiles, one cell each; on real engines there is one model, and this is not read.
        replicas: R of simulated and emulated cells; None: as many as the paper has of the model on eight GPUs.
        workloads: of response lengths, one cell each: names, or paths of traces (as `tailsieve analyze lengths` reads);
            "sampled" where no length is forced.
        seed: of the workloads.
        divisor: tokens of the workload that one token of the job stands for.
        stretch: tokens that one of the job takes the time of, but on real engines; None: as many as it stands for.
        step_wall_s: emulated only; wall time that a step of the baseline should take, seconds.
        acceptance: not on real engines; chance that a draft is accepted, given that those before it were: replicas
            then draft up to speculation.max_depth tokens with the model's MTP head.
        out: folder of results.json, bench.png and of each run's own result files.
    """

    backend: str = "emulated"
    models: tuple[str, ...] = ("qwen3.5-4b",)
    replicas: int | None = None
    workloads: tuple[str, ...] = ("math_stepwise",)
    seed: int = 0
    divisor: int = 16
    stretch: int | None = None
    step_wall_s: float = 4.0
    acceptance: float | None = None
    out: str = "outputs/bench"

    def __post_init__(self) -> None:
        _each_one_of("backend", (self.backend,), BACKENDS)
        if self.backend != "vllm":
            _each_one_of("models", self.models, PROFILES)
        if self.seed < 0:
            raise SettingsError(f"{BLOCK}.seed", self.seed, "must be 0 or more")
        if self.replicas is not None and self.replicas < 1:
            raise SettingsError(f"{BLOCK}.replicas", self.replicas, "must be 1 or more")
        for key in ("divisor", "stretch"):
            if getattr(self, key) is not None and getattr(self, key) < 1:
                raise SettingsError(f"{BLOCK}.{key}", getattr(self, key), "must be 1 or more")
        if not self.step_wall_s > 0:
            raise SettingsError(f"{BLOCK}.step_wall_s", self.step_wall_s, "must be a positive number of seconds")
        if self.acceptance is not None and not 0 <= self.acceptance <= 1:
            raise SettingsError(f"{BLOCK}.acceptance", self.acceptance, "must be between 0 and 1")
        for name in self.workloads:
            if name != SAMPLED:
                self.lengths(name, responses=1)
            elif self.backend != "vllm":
                right = f"backend {self.backend} has no model that could say how long a response is"
                raise SettingsError(f"{BLOCK}.workloads", name, right)

    def lengths(self, workload: str, responses: int) -> Coarse:
        """A workload's lengths in tokens that take time.

        Raises:
            SettingsError: if there is no such workload or trace.
        """
        try:
            fine = named_workload(workload, self.seed, responses)
        except ValueError as error:
            raise SettingsError(f"{BLOCK}.workloads", workload, str(error)) from None
        return Coarse(fine, self.divisor, self.stretch or self.divisor)


def read_bench(block: Mapping[str, Any] | None) -> BenchSettings:
    """The settings of the plain mapping under `bench`.

    Raises:
        SettingsError: naming the key, the value and what would be right.
    """
    settings: BenchSettings = build_block(BenchSettings, block or {}, BLOCK)
    return settings


def _each_one_of(key: str, values: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    unknown = [value for value in values if value not in allowed]
    if unknown or not values:
        raise SettingsError(f"{BLOCK}.{key}", unknown or None, f"must be of {', '.join(allowed)}")
