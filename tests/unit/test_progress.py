"""Progress of a job's runs."""

from pathlib import Path

import pytest

from tailsieve_rl.telemetry import progress


def test_each_runs_finished_steps_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOOK_S", 0.01)
    (tmp_path / "tailsieve").mkdir()
    with progress.shown("bench", {"uniform-1": 3, "tailsieve": 7}, tmp_path):
        (tmp_path / "tailsieve" / "steps.jsonl").write_text("{}\n{}\n")
    assert capsys.readouterr().err.splitlines()[-1] == "bench: tailsieve: 2 of 7 steps"
