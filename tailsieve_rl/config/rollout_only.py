"""Settings of trainer mode `tailsieve_rollout`, under `trainer.v1.tailsieve_rollout`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tailsieve_rl.config.blocks import SettingsError, build_block
from tailsieve_rl.routing.policies.named import ADAPTS, BASELINE, COMPARED, UNIFORM_DEPTH, is_named

BLOCK = "trainer.v1.tailsieve_rollout"


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """One policy's rollouts.

    Attributes:
        name: of its folder; repeats of the baseline are numbered.
        policy: its name in routing.policies.named.
        first: step that it begins with: a policy that does not adapt skips the steps in which others converge.
        last: step that it ends with.
    """

    name: str
    policy: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class RolloutOnlySettings:
    """What is compared (the paper's step-wise evaluation, 4.2 and A.2).

    Attributes:
        policies: in order; the baseline `uniform` is needed for ratios.
        converge: steps in which policies adapt, before any is measured.
        rounds: consecutive steps that are measured.
        baseline_repeats: how often the baseline is run.
        profile: decode profile that oracles and schedules by batch size are made from; None: `decode_model.path`, or
            what emulated engines decode by.
        output_dir: each run writes its result files into a folder of it.
    """

    policies: tuple[str, ...] = (BASELINE, "least_loaded", "tailsieve")
    converge: int = 16
    rounds: int = 3
    baseline_repeats: int = 3
    profile: str | None = None
    output_dir: str = "outputs/bench"

    def __post_init__(self) -> None:
        unknown = [name for name in self.policies if not is_named(name)]
        if unknown or BASELINE not in self.policies or len(set(self.policies)) < len(self.policies):
            right = f"must be {BASELINE} and any of {', '.join(COMPARED[1:])}, {UNIFORM_DEPTH}K, each once"
            raise SettingsError(f"{BLOCK}.policies", list(self.policies), right)
        for name, least in (("converge", 0), ("rounds", 1), ("baseline_repeats", 1)):
            if getattr(self, name) < least:
                raise SettingsError(f"{BLOCK}.{name}", getattr(self, name), f"must be {least} or more")

    @property
    def last(self) -> int:
        """The last step."""
        return self.converge + self.rounds

    def runs(self) -> Iterator[PolicyRun]:
        """What is run, in order: the baseline's repeats first, last and evenly between, as a machine may change."""
        others = [policy for policy in self.policies if policy != BASELINE]
        gaps = max(1, self.baseline_repeats - 1)
        at = [round(i * len(others) / gaps) for i in range(self.baseline_repeats)]
        for place in range(len(others) + 1):
            for repeat in [i for i, where in enumerate(at) if where == place]:
                yield PolicyRun(f"{BASELINE}-{repeat + 1}", BASELINE, self.converge + 1, self.last)
            for policy in others[place : place + 1]:
                yield PolicyRun(policy, policy, 1 if policy in ADAPTS else self.converge + 1, self.last)


def read_rollout_only(block: Mapping[str, Any] | None) -> RolloutOnlySettings:
    """The settings of the plain mapping under the block; a missing one means all defaults.

    Raises:
        SettingsError: naming the key, the value and what would be right.
    """
    settings: RolloutOnlySettings = build_block(RolloutOnlySettings, block or {}, BLOCK)
    return settings
