"""Settings of the `tailsieve` trainer mode, read once from `trainer.v1.tailsieve` and validated as a whole.

On verl's own command line every key is written `++trainer.v1.tailsieve.KEY=VALUE`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from tailsieve_rl.routing.policies import POLICIES
from tailsieve_rl.routing.policies.dispatch import DISPATCH

BLOCK = "trainer.v1.tailsieve"
WARMUPS = ("reserve", "overlaunch", "none")
CONTROLLERS = ("fixed",)


class SettingsError(ValueError):
    """A setting that cannot work; the message names the key, the value and what would be right."""

    def __init__(self, key: str, value: Any, right: str):
        self.key, self.value, self.right = key, value, right
        super().__init__(f"{key}={value!r}: {right}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (SettingsError, (self.key, self.value, self.right))


@dataclass(frozen=True, slots=True)
class AllocationSettings:
    """Where the run starts. None: a sixteenth of the groups and a quarter of the replicas, at least one of each."""

    initial_groups: int | None = None
    initial_replicas: int | None = None


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Which controller moves (q, m).

    Attributes:
        name: "fixed" keeps the initial allocation.
    """

    name: str = "fixed"


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
class Settings:
    """The whole block.

    Attributes:
        policy: routing policy by name.
        warmup: "reserve" runs one rollout of N prompts kept back from the end of the sampler's order and takes the
            first tail set from it; "overlaunch" draws N + q in the first step; "none" draws N.
        dispatch: how responses are spread within a pool, "request" or "group".
        allocation: where the run starts.
        controller: what moves (q, m).
        sampling: parameters of each request.
        replay_lengths: data column that forces each response's length (n integers, tokens, a row); for benchmarks.
        retries: how often a failed response, or a failed reward, is tried again before the run stops.
        watchdog_s: seconds without any event after which a step is declared stuck.
        output_dir: where the result files go; None: `trainer.default_local_dir`.
    """

    policy: str = "two_pool"
    warmup: str = "reserve"
    dispatch: str = "request"
    allocation: AllocationSettings = field(default_factory=AllocationSettings)
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    replay_lengths: str | None = None
    retries: int = 2
    watchdog_s: float = 1800.0
    output_dir: str | None = None

    def __post_init__(self) -> None:
        _one_of("policy", self.policy, POLICIES)
        _one_of("warmup", self.warmup, WARMUPS)
        _one_of("dispatch", self.dispatch, tuple(DISPATCH))
        _one_of("controller.name", self.controller.name, CONTROLLERS)
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
            given = {"initial_groups": self.allocation.initial_groups}
            given["initial_replicas"] = self.allocation.initial_replicas
            raise SettingsError(
                f"{BLOCK}.allocation",
                given,
                "give both initial_groups and initial_replicas, or neither",
            )


def read_settings(block: Mapping[str, Any] | None) -> Settings:
    """Build the settings from the plain mapping under `trainer.v1.tailsieve`; a missing block means all defaults.

    Raises:
        SettingsError: for an unknown key, a wrong type or a value out of range.
    """
    return _build(Settings, dict(block or {}), BLOCK)


def _one_of(key: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise SettingsError(f"{BLOCK}.{key}", value, f"must be one of {', '.join(allowed)}")


def _build(cls: type, raw: Mapping[str, Any], path: str) -> Any:
    if not isinstance(raw, Mapping):
        raise SettingsError(path, raw, f"must be a block with the keys {', '.join(f.name for f in fields(cls))}")
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls)}
    values = {}
    for key, value in raw.items():
        if key not in known:
            raise SettingsError(f"{path}.{key}", value, f"no such key; known keys are {', '.join(known)}")
        values[key] = _coerce(hints[key], value, f"{path}.{key}")
    missing = [n for n, f in known.items() if n not in values and f.default is MISSING and f.default_factory is MISSING]
    if missing:
        raise SettingsError(path, dict(raw), f"needs {', '.join(missing)}")
    return cls(**values)


def _coerce(hint: Any, value: Any, path: str) -> Any:
    options = get_args(hint)
    if type(None) in options:
        if value is None:
            return None
        hint = next(o for o in options if o is not type(None))
    if is_dataclass(hint):
        return _build(hint, value or {}, path)  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
            raise SettingsError(path, value, "must be a string or a list of strings")
        return tuple(items)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise SettingsError(path, value, f"must be of type {hint.__name__}")
    return value
