"""The result files: complete after every step, continued by a resumed run, compared in a table."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus
from tailsieve_rl.routing.plan import Pool
from tailsieve_rl.telemetry import run_files
from tailsieve_rl.telemetry.compare import table
from tailsieve_rl.telemetry.run_files import RunFiles
from tailsieve_rl.telemetry.runs import RunFilesError

from .written import write_run


def _files(out: Path, resumed_after: int = 0, mode: str = "tailsieve") -> RunFiles:
    return RunFiles(str(out), mode=mode, backend="vllm", groups=1, responses=2, resumed_after=resumed_after)


def _record(uid: str, session: int, tokens: int, status: ResponseStatus) -> ResponseRecord:
    return ResponseRecord(uid, 3, session, 1, Pool.BULK, "r", status, 5, tokens, 0.0, None, 1.0)


def _add(files: RunFiles, step: int, gen_time_s: float = 2.0, reward: float = 0.5, last: bool = False) -> None:
    done, gone = ResponseStatus.CONSUMED, ResponseStatus.ABORTED
    records = [_record("a", 0, 10, done), _record("a", 1, 30, done), _record("b", 0, 999, gone)]
    line: dict[str, Any] = {"q": 1, "m": 1, "gen_time_s": gen_time_s, "consumed_groups": 1, "aborted_tokens": 999}
    files.add_step(step, records, {**line, "reward_mean": reward, "off_policy_trajectories": 0}, last)


def test_the_summary_counts_consumed_responses_only(tmp_path: Path) -> None:
    files = _files(tmp_path)
    for step in (1, 2):
        _add(files, step)
    files.flush()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["steps"], summary["consumed_groups"], summary["off_policy_trajectories"]) == (2, 2, 0)
    assert (summary["response_length_p50"], summary["response_length_max"]) == (20, 30)


def test_a_run_that_is_killed_leaves_the_steps_it_finished(tmp_path: Path) -> None:
    files = _files(tmp_path)
    for step in range(1, 4):
        _add(files, step)
    assert len((tmp_path / "steps.jsonl").read_text().splitlines()) == 3
    assert set(pq.read_table(tmp_path / "requests.parquet")["step"].to_pylist()) == {1, 2, 3}


def test_a_resumed_run_drops_the_steps_after_its_checkpoint_and_goes_on(tmp_path: Path) -> None:
    first = _files(tmp_path)
    for step in range(1, 5):
        _add(first, step)
    first.flush()
    resumed = _files(tmp_path, resumed_after=2)
    _add(resumed, 3, gen_time_s=7.0)
    resumed.flush()
    steps = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [(s["step"], s["gen_time_s"]) for s in steps] == [(1, 2.0), (2, 2.0), (3, 7.0)]
    assert pq.read_table(tmp_path / "requests.parquet")["step"].to_pylist().count(3) == 3


def test_a_large_file_is_rewritten_when_it_grew_by_a_tenth_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "REWRITTEN_ROWS", 0)
    files = _files(tmp_path)
    written = []
    for step in range(1, 41):
        _add(files, step, last=step == 40)
        written.append(pq.read_table(tmp_path / "requests.parquet").num_rows)
    assert all(rows >= 0.9 * 3 * step for step, rows in enumerate(written, start=1))
    assert len(set(written)) < 40 and written[-1] == 3 * 40


def test_the_table_sets_runs_side_by_side_with_the_ratio_of_paired_steps(tmp_path: Path) -> None:
    for name, seconds in (("verl_sync", 4.0), ("tailsieve", 3.0)):
        files = _files(tmp_path / name, mode=name)
        for step in range(1, 6):
            _add(files, step, gen_time_s=seconds, reward=step / 10)
        files.flush()
    text = table([tmp_path / "verl_sync", tmp_path / "tailsieve"])
    assert "0.75 (0.75-0.75)" in text
    assert "4.00 (4.00-4.00)" in text and "3.00 (3.00-3.00)" in text
    assert "0.200 -> 0.400" in text


def test_rollouts_without_training_are_compared_too(tmp_path: Path) -> None:
    text = table([write_run(tmp_path / policy, policy, steps=2) for policy in ("uniform", "tailsieve")])
    [reward] = [line for line in text.splitlines() if line.startswith("reward")]
    assert reward.split()[-2:] == ["-", "-"]


def test_a_folder_without_a_run_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunFilesError, match=r"holds no summary\.json"):
        table([tmp_path])
