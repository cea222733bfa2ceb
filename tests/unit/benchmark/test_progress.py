"""Progress of a job's runs."""

from pathlib import Path

import pytest

from tailsieve_rl.benchmark import progress
from tailsieve_rl.config.rollout_only import PolicyRun


def test_each_runs_finished_steps_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOOK_S", 0.01)
    (tmp_path / "tailsieve").mkdir()
    with progress.shown([PolicyRun("uniform-1", "uniform", 5, 7), PolicyRun("tailsieve", "tailsieve", 1, 7)], tmp_path):
        (tmp_path / "tailsieve" / "steps.jsonl").write_text("{}\n{}\n")
    assert capsys.readouterr().err.splitlines()[-1] == "bench: tailsieve: 2 of 7 steps"
