"""Settings of trainer mode `tailsieve_evaluation`, under `trainer.v1.tailsieve_evaluation`."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from tailsieve_rl.config.blocks import SettingsError, build_block

BLOCK = "trainer.v1.tailsieve_evaluation"
SAMPLES = "samples"
"""Column of the prompts that says how many responses each gets."""


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """How a data set is answered.

    Attributes:
        requests: most responses that one round consumes; the paper's steps have 64 groups of 8.
        output_dir: prompts with the same number of responses have a folder in it, `n` and that number.
    """

    requests: int = 512
    output_dir: str = "outputs/evaluation"

    def __post_init__(self) -> None:
        if self.requests < 1:
            raise SettingsError(f"{BLOCK}.requests", self.requests, "must be 1 or more")


def read_evaluation(block: Mapping[str, Any] | None) -> EvaluationSettings:
    """The settings of the plain mapping under the block; a missing one means all defaults.

    Raises:
        SettingsError: naming the key, the value and what would be right.
    """
    settings: EvaluationSettings = build_block(EvaluationSettings, block or {}, BLOCK)
    return settings


def stream(samples: int) -> str:
    """The folder of the prompts that get so many responses."""
    return f"n{samples}"


def rounds(prompts: int, samples: int, requests: int) -> int:
    """Rounds in which the prompts are answered."""
    return ceil(prompts / round_groups(prompts, samples, requests))


def round_groups(prompts: int, samples: int, requests: int) -> int:
    """N, prompts of a round: rounds are as even as they can be, so that the last is no small rest."""
    most = max(1, requests // samples)
    return ceil(prompts / ceil(prompts / most))
