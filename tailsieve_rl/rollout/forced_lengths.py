"""Response lengths that a run decides beforehand: from a data column, or from a workload of the simulator."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailsieve_rl.config.settings import BLOCK, ReplayWorkloadSettings, Settings, SettingsError
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
        rows: prompts of the data set.
    """

    def __init__(self, settings: Settings, responses: int, rows: int):
        self._column, self._responses, self._rows = settings.replay_lengths, responses, rows
        self._workload = None if self._column else replayed_workload(settings.replay_workload, responses)

    def of(self, prompts: Sequence[Prompt], attempts: Sequence[int], step: int) -> Lengths:
        """uid -> tokens of each of its n responses.

        Raises:
            SettingsError: if a row of the data column has fewer than n lengths, or one below 1.
        """
        if self._workload is None:
            return {prompt.uid: self._from_column(prompt) for prompt in prompts}
        positions = np.array([prompt.epoch * self._rows + prompt.index for prompt in prompts], np.int64)
        tokens = self._workload.lengths(positions, np.array(attempts, np.int64), step)
        return {prompt.uid: row for prompt, row in zip(prompts, tokens.tolist(), strict=True)}

    def _from_column(self, prompt: Prompt) -> list[int]:
        assert self._column is not None
        lengths = column_lengths(prompt.row, self._column)
        if len(lengths) < self._responses or min(lengths) < 1:
            right = f"row {prompt.index} must have {self._responses} lengths of 1 token or more, not {lengths}"
            raise SettingsError(f"{BLOCK}.replay_lengths", self._column, right)
        return lengths[: self._responses]
