"""Lengths that a run decides beforehand."""

import numpy as np
import pytest

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import ReplayWorkloadSettings, Settings
from tailsieve_rl.rollout.forced_lengths import ForcedLengths
from tailsieve_rl.rollout.prompt_stream import Prompt
from tailsieve_rl.simulation.workloads import WORKLOADS

BY_COLUMN = Settings(replay_lengths="lengths")
BY_WORKLOAD = Settings(replay_workload=ReplayWorkloadSettings("math_stepwise", seed=3, divisor=10))
ROWS: list[dict] = [{}] * 50


def _prompt(index: int, epoch: int = 0, **row: object) -> Prompt:
    return Prompt(f"{epoch}-{index}", epoch, index, row)


def test_a_column_gives_the_same_lengths_in_every_attempt() -> None:
    prompts = [_prompt(0, lengths=[5, 9]), _prompt(1, lengths=np.array([[7], [8]]))]
    lengths = ForcedLengths(BY_COLUMN, 2, [prompt.row for prompt in prompts], longest=9)
    assert lengths.of(prompts, [1, 1], 1) == lengths.of(prompts, [2, 3], 9) == {"0-0": [5, 9], "0-1": [7, 8]}


@pytest.mark.parametrize("given", [[5], [5, 0], [5, 10]])
def test_a_row_with_too_few_lengths_or_one_that_the_model_cannot_give_is_refused(given: list[int]) -> None:
    rows = [{"lengths": [5, 9]}, {"lengths": given}]
    with pytest.raises(SettingsError, match=r"replay_lengths='lengths': row 1 must have 2 lengths of 1 to 9 tokens"):
        ForcedLengths(BY_COLUMN, 2, rows, longest=9)


def test_a_workload_gives_what_the_simulator_sees_in_coarser_tokens() -> None:
    found = ForcedLengths(BY_WORKLOAD, 8, ROWS, longest=2000).of([_prompt(7), _prompt(7, epoch=1)], [1, 2], 4)
    fine = WORKLOADS["math_stepwise"](3, 8).lengths(np.array([7, 57]), np.array([1, 2]), 4)
    assert np.array(list(found.values())) == pytest.approx(fine / 10, abs=0.5)


def test_a_regenerated_prompt_has_lengths_of_its_own() -> None:
    lengths = ForcedLengths(BY_WORKLOAD, 8, ROWS, longest=2000)
    assert lengths.of([_prompt(7)], [1], 1) != lengths.of([_prompt(7)], [2], 1)
