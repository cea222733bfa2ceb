"""Response lengths that a run decides beforehand: from a data column, or from a workload of the simulator."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import BLOCK, ReplayWorkloadSettings, Settings
from tailsieve_rl.rollout.prompt_stream import Prompt
from tailsieve_rl.simulation.workloads import Coarse, named_workload

Lengths = Mapping[str, list[int]]


def column_lengths(row: Mapping[str, Any], column: str) -> list[int]:
    """The lengths of a prompt's responses, tokens, from its data column."""
    return [int(length) for length in np.asarray(row[column]).reshape(-1)]


def replayed_workload(settings: ReplayWorkloadSettings, responses: int) -> Coarse:
    """The workload that is named, in the job's tokens.

    Raises:
        SettingsError: if there is no such workload or trace.
    """
    assert settings.name is not None
    try:
        return Coarse(named_workload(settings.name, settings.seed, responses), settings.divisor)
    except ValueError as error:
        raise SettingsError(f"{BLOCK}.replay_workload.name", settings.name, str(error)) from None


class ForcedLengths:
    """Tells the lengths of a step's responses before it is dispatched.

    A workload's prompt stream is the data set, epoch after epoch, and a regenerated prompt has new lengths in it.

    Args:
        settings: the trainer mode's settings; they replay lengths.
        responses: n.
        dataset: prompts by row; all their lengths in a data column are checked at once.
        longest: response that the model may give, tokens.

    Raises:
        SettingsError: if a row of the data column has fewer than n lengths, or one that is not 1 to `longest`.
    """

    def __init__(self, settings: Settings, responses: int, dataset: Sequence[Mapping[str, Any]], longest: int):
        self._column, self._responses, self._rows = settings.replay_lengths, responses, len(dataset)
        if self._column is not None:
            _check_column(self._column, dataset, responses, longest)
        self._workload = None if self._column else replayed_workload(settings.replay_workload, responses)

    def of(self, prompts: Sequence[Prompt], attempts: Sequence[int], step: int) -> Lengths:
        """uid -> tokens of each of its n responses."""
        if self._workload is None:
            assert self._column is not None
            return {prompt.uid: column_lengths(prompt.row, self._column)[: self._responses] for prompt in prompts}
        positions = np.array([prompt.epoch * self._rows + prompt.index for prompt in prompts], np.int64)
        tokens = self._workload.lengths(positions, np.array(attempts, np.int64), step)
        return {prompt.uid: row for prompt, row in zip(prompts, tokens.tolist(), strict=True)}


def _check_column(column: str, dataset: Sequence[Mapping[str, Any]], responses: int, longest: int) -> None:
    for index in range(len(dataset)):
        lengths = column_lengths(dataset[index], column)
        if len(lengths) < responses or not all(1 <= length <= longest for length in lengths):
            right = f"row {index} must have {responses} lengths of 1 to {longest} tokens, not {lengths}"
            raise SettingsError(f"{BLOCK}.replay_lengths", column, right)
