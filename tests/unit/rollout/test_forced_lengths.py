"""Lengths that a run decides beforehand."""

import numpy as np
import pytest

from tailsieve_rl.config.settings import ReplayWorkloadSettings, Settings, SettingsError
from tailsieve_rl.rollout.forced_lengths import ForcedLengths
from tailsieve_rl.rollout.prompt_stream import Prompt
from tailsieve_rl.simulation.workloads import WORKLOADS

BY_COLUMN = Settings(replay_lengths="lengths")
BY_WORKLOAD = Settings(replay_workload=ReplayWorkloadSettings("math_stepwise", seed=3, divisor=10))


def _prompt(index: int, epoch: int = 0, **row: object) -> Prompt:
    return Prompt(f"{epoch}-{index}", epoch, index, row)


def test_a_column_gives_the_same_lengths_in_every_attempt() -> None:
    prompts = [_prompt(0, lengths=[5, 9]), _prompt(1, lengths=np.array([[7], [8]]))]
    lengths = ForcedLengths(BY_COLUMN, responses=2, rows=2)
    assert lengths.of(prompts, [1, 1], 1) == lengths.of(prompts, [2, 3], 9) == {"0-0": [5, 9], "0-1": [7, 8]}


@pytest.mark.parametrize("given", [[5], [5, 0]])
def test_a_row_with_too_few_lengths_or_none_is_refused(given: list[int]) -> None:
    with pytest.raises(SettingsError, match=r"replay_lengths='lengths': row 4 must have 2 lengths of 1 token or more"):
        ForcedLengths(BY_COLUMN, responses=2, rows=9).of([_prompt(4, lengths=given)], [1], 1)


def test_a_workload_gives_what_the_simulator_sees_in_coarser_tokens() -> None:
    found = ForcedLengths(BY_WORKLOAD, responses=8, rows=50).of([_prompt(7), _prompt(7, epoch=1)], [1, 2], 4)
    fine = WORKLOADS["math_stepwise"](3, 8).lengths(np.array([7, 57]), np.array([1, 2]), 4)
    assert np.array(list(found.values())) == pytest.approx(fine / 10, abs=0.5)


def test_a_regenerated_prompt_has_lengths_of_its_own() -> None:
    lengths = ForcedLengths(BY_WORKLOAD, responses=8, rows=50)
    assert lengths.of([_prompt(7)], [1], 1) != lengths.of([_prompt(7)], [2], 1)
