"""Settings of the `tailsieve` trainer mode, read once from `trainer.v1.tailsieve` and validated as a whole.

On verl's own command line every key is written `++trainer.v1.tailsieve.KEY=VALUE`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailsieve_rl.config.blocks import SettingsError, build_block, check_one_of
from tailsieve_rl.config.speculation import SpeculationSettings
from tailsieve_rl.routing.allocation import UNIFORM
from tailsieve_rl.routing.control import CONTROLLERS, Hierarchical, Joint
from tailsieve_rl.routing.policies import ORACLES, POLICIES
from tailsieve_rl.routing.policies.dispatch import DISPATCH

BLOCK = "trainer.v1.tailsieve"
WARMUPS = ("reserve", "overlaunch", "none")
DECODE_SOURCES = ("online", "file")

# Whose defaults the settings have.
_HIERARCHICAL, _JOINT = Hierarchical(UNIFORM), Joint(UNIFORM)


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Where the run starts; give both or neither. `0` and `0` is uniform routing.

    Attributes:
        initial_groups: q, groups regenerated in the tail pool; None: a sixteenth of N, at least one.
        initial_replicas: m, replicas of the tail pool; None: a quarter of R, at least one.
    """

    initial_groups: int | None = None
    initial_replicas: int | None = None


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Which controller moves (q, m), and how. Reasons for the defaults are with the controllers, in routing.control.

    Attributes:
        name: "joint" searches all (q, m) on a predictive model, "hierarchical" is the paper's, "fixed" stays.
        max_change: largest change of q in one decision, groups; None: N / 32, at least 1.
        switch_threshold: predicted saving, as a share of the step, that a change of allocation must promise.
        history_steps: steps whose groups and decoding times predictions are made from.
        samples: pools of groups that a prediction draws.
        seed: of those draws.
        ema: hierarchical only; weight of a new measurement of the pools' rates.
        momentum: hierarchical only; weight of q's old velocity.
        inner_threshold: hierarchical only; predicted saving that a change of q must promise.
        smoothing: joint only; weight of a new prediction.
        isolation_gain: joint only; predicted saving over uniform routing below which no group is isolated.
    """

    name: str = "joint"
    max_change: int | None = None
    switch_threshold: float = _JOINT.tuning.switch_threshold
    history_steps: int = _JOINT.tuning.history_steps
    samples: int = _JOINT.tuning.samples
    seed: int = 0
    ema: float = _HIERARCHICAL.ema
    momentum: float = _HIERARCHICAL.momentum
    inner_threshold: float = _HIERARCHICAL.inner_threshold
    smoothing: float = _JOINT.smoothing
    isolation_gain: float = _JOINT.isolation_gain


@dataclass(frozen=True, slots=True)
class DecodeModelSettings:
    """Where tau(b), the seconds per token at b running requests, comes from.

    Attributes:
        source: "online" estimates it from the run itself, "file" reads a profile.
        path: of the profile.
    """

    source: str = "online"
    path: str | None = None


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Sampling parameters that verl's V1 worker does not pass on. Validation takes all but the seed.

    Attributes:
        presence_penalty: vLLM's presence penalty, -2 to 2 (the paper: 1.5).
        stop: strings that end a response (the paper: "<END>").
        seed: when set, each request gets its own seed from (seed, step, prompt, session).
    """

    presence_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayWorkloadSettings:
    """Response lengths forced by a workload of the simulator: regenerated responses have lengths of their own.

    Attributes:
        name: of the workload, or the path of a trace that it resamples (as `tailsieve analyze lengths` reads).
        seed: of its lengths.
        divisor: tokens of the workload that one token of the job stands for.
    """

    name: str | None = None
    seed: int = 0
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What is routed where.

    Attributes:
        policy: "two_pool" (TailSieve); "uniform" deals out whole groups, evenly by count; "least_loaded" is verl's
            rule; where lengths are replayed, an oracle that is told them: "uniform_oracle", "streamrl_oracle",
            "seer_oracle", "graded_oracle".
        warmup: "reserve" runs one rollout of N prompts kept back from the end of the sampler's order and takes the
            first tail set from it; "overlaunch" draws N + q in the first step; "none" draws N.
        dispatch: how responses are spread within a pool, "request" or "group".
        allocation: where the run starts.
        controller: what moves (q, m).
        decode_model: what predictions take tau(b) from.
        speculation: drafting, by pool.
        sampling: parameters of each request.
        replay_lengths: data column that forces each response's length (n integers, tokens, a row); for benchmarks.
        replay_workload: the same by a workload's lengths.
        retries: how often a failed response, reward or answer of a teacher is tried again before the run stops.
        watchdog_s: seconds without any event after which a step is declared stuck.
        output_dir: where the result files go; None: `trainer.default_local_dir`.
    """

    policy: str = "two_pool"
    warmup: str = "reserve"
    dispatch: str = "request"
    allocation: AllocationSettings = field(default_factory=AllocationSettings)
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    decode_model: DecodeModelSettings = field(default_factory=DecodeModelSettings)
    speculation: SpeculationSettings = field(default_factory=SpeculationSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    replay_lengths: str | None = None
    replay_workload: ReplayWorkloadSettings = field(default_factory=ReplayWorkloadSettings)
    retries: int = 2
    watchdog_s: float = 1800.0
    output_dir: str | None = None

    def __post_init__(self) -> None:
        check_one_of(f"{BLOCK}.policy", self.policy, POLICIES)
        if self.policy in ORACLES and not self.replays:
            right = f"policy {self.policy} must be told the lengths: give this or replay_workload.name"
            raise SettingsError(f"{BLOCK}.replay_lengths", None, right)
        if self.replay_lengths is not None and self.replay_workload.name is not None:
            right = "give replay_lengths or replay_workload, not both"
            raise SettingsError(f"{BLOCK}.replay_lengths", self.replay_lengths, right)
        if self.replay_workload.seed < 0 or self.replay_workload.divisor < 1:
            given = {"seed": self.replay_workload.seed, "divisor": self.replay_workload.divisor}
            raise SettingsError(f"{BLOCK}.replay_workload", given, "seed must be 0 or more, divisor 1 or more")
        check_one_of(f"{BLOCK}.warmup", self.warmup, WARMUPS)
        check_one_of(f"{BLOCK}.dispatch", self.dispatch, tuple(DISPATCH))
        check_one_of(f"{BLOCK}.controller.name", self.controller.name, CONTROLLERS)
        _check_controller(self.controller)
        check_one_of(f"{BLOCK}.decode_model.source", self.decode_model.source, DECODE_SOURCES)
        if (self.decode_model.source == "file") != (self.decode_model.path is not None):
            raise SettingsError(
                f"{BLOCK}.decode_model.path",
                self.decode_model.path,
                "must be the path of a decode profile with decode_model.source=file, and not be given without it",
            )
        if self.retries < 0:
            raise SettingsError(f"{BLOCK}.retries", self.retries, "must be 0 or more")
        if self.watchdog_s <= 0:
            raise SettingsError(f"{BLOCK}.watchdog_s", self.watchdog_s, "must be a positive number of seconds")
        if not -2.0 <= self.sampling.presence_penalty <= 2.0:
            raise SettingsError(
                f"{BLOCK}.sampling.presence_penalty", self.sampling.presence_penalty, "must be between -2 and 2"
            )
        if any(not text for text in self.sampling.stop):
            raise SettingsError(f"{BLOCK}.sampling.stop", self.sampling.stop, "a stop string cannot be empty")
        if (self.allocation.initial_groups is None) != (self.allocation.initial_replicas is None):
            start = {name: getattr(self.allocation, name) for name in ("initial_groups", "initial_replicas")}
            raise SettingsError(
                f"{BLOCK}.allocation", start, "give both initial_groups and initial_replicas, or neither"
            )

    @property
    def replays(self) -> bool:
        """Whether the run decides every response's length beforehand."""
        return self.replay_lengths is not None or self.replay_workload.name is not None


def read_settings(block: Mapping[str, Any] | None) -> Settings:
    """Build the settings from the plain mapping under `trainer.v1.tailsieve`; a missing block means all defaults.

    Raises:
        SettingsError: for an unknown key, a wrong type or a value out of range.
    """
    return build_block(Settings, dict(block or {}), BLOCK)


def _check_controller(controller: ControllerSettings) -> None:
    def refuse_unless(holds: bool, name: str, right: str) -> None:
        if not holds:
            raise SettingsError(f"{BLOCK}.controller.{name}", getattr(controller, name), right)

    refuse_unless(controller.max_change is None or controller.max_change > 0, "max_change", "must be 1 group or more")
    for name in ("history_steps", "samples"):
        refuse_unless(getattr(controller, name) > 0, name, "must be 1 or more")
    refuse_unless(controller.seed >= 0, "seed", "must be 0 or more")
    for name in ("switch_threshold", "inner_threshold", "isolation_gain", "momentum"):
        refuse_unless(0 <= getattr(controller, name) < 1, name, "must be between 0 and below 1")
    for name in ("ema", "smoothing"):
        refuse_unless(0 < getattr(controller, name) <= 1, name, "must be above 0 and up to 1")
