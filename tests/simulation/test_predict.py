"""`tailsieve predict`, as a user calls it."""

import json
from pathlib import Path

import numpy as np
import pytest

from tailsieve_rl.cli import main
from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint, save_profile
from tailsieve_rl.simulation import prediction

HEADER = "prompt_id,response_tokens\n"
SETUP = "--profile qwen3-4b --replicas 8 --groups 64 --repeats 2".split()


def heavy_tailed(folder: Path) -> Path:
    """1000 prompts with eight responses each, of which every tenth prompt's are always three times as long."""
    noise = 0.1 * np.random.default_rng(0).standard_normal((1000, 8))
    typical = np.where(np.arange(1000) % 10 == 0, 1500, 500)
    lengths = np.rint(typical[:, None] * np.exp(noise)).astype(int)
    return write(folder / "heavy.csv", lengths)


def write(path: Path, lengths: np.ndarray) -> Path:
    path.write_text(HEADER + "".join(f"{i},{tokens}\n" for i, row in enumerate(lengths) for tokens in row))
    return path


def predicted(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> str:
    assert main(["predict", str(path), *SETUP, *options]) == 0
    return capsys.readouterr().out


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, where it does not matter what they find."""
    monkeypatch.setattr(prediction, "CONVERGE", 1)
    monkeypatch.setattr(prediction, "MEASURED", 2)


def test_a_heavy_tail_pays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = predicted(capsys, heavy_tailed(tmp_path), "--repeats", "4", "--out", str(tmp_path / "a" / "b"))
    assert "\nIt would pay: " in out
    assert "Qwen3-4B-Instruct-2507 on NVIDIA H100 SXM 80GB, modelled" in out
    assert "N = 64 groups (--groups), n = 8 responses (as most prompts of the file have), R = 8 replicas" in out
    results = json.loads((tmp_path / "a" / "b" / "results.json").read_text())
    assert results["pays"] and results["verdict"] in out
    for baseline in ("uniform", "least_loaded"):
        over = results[f"over_{baseline}"]
        assert 1.01 < over["low"] < over["value"] < over["high"]
        assert over["value"] == pytest.approx(results[f"{baseline}_s"] / results["tailsieve_s"], rel=0.05)
    assert 4 <= results["q"] <= 16 and 1 <= results["m"] <= 7 and 0 < results["wasted"] < 0.3


def test_lengths_that_are_alike_do_not_pay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = np.random.default_rng(0).integers(900, 1100, (100, 4))
    out = predicted(capsys, write(tmp_path / "t.csv", lengths))
    assert "It would not pay: lengths are too alike, P99 is 1.1 x P50." in out


def test_one_replica_has_nothing_to_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = predicted(capsys, heavy_tailed(tmp_path), "--replicas", "1")
    assert "It would not pay: a single replica cannot be split." in out and "1.000x (1.000-1.000)" in out


def test_the_same_seed_predicts_the_same_and_another_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    path = heavy_tailed(tmp_path)
    one, same, other = (predicted(capsys, path, "--seed", seed) for seed in ("3", "3", "4"))
    assert one == same != other


def test_a_spread_that_is_assumed_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    out = predicted(capsys, write(tmp_path / "t.csv", np.arange(10, 60)[:, None]))
    assert "warning   no prompt has a second response: a spread of 0.35" in out
    assert "n = 8 responses (as in the paper: the file has one)" in out


def test_a_run_says_itself_how_large_a_step_is_and_a_profile_may_be_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    shorten(monkeypatch)
    step, prompt, session = (axis.ravel() for axis in np.indices((3, 6, 2)))
    columns = {"step": step, "prompt_index": 6 * step + prompt, "status": ["consumed"] * 36, "tokens": 10 + session}
    pq.write_table(pa.table(columns), tmp_path / "requests.parquet")
    points = (DecodePoint(1, 0.01), DecodePoint(64, 0.02))
    save_profile(DecodeModel(points, "mine", "this GPU", "vllm", "measured"), tmp_path / "profile.json")
    arguments = ["--profile", str(tmp_path / "profile.json"), "--replicas", "2", "--repeats", "2"]
    assert main(["predict", str(tmp_path / "requests.parquet"), *arguments]) == 0
    out = capsys.readouterr().out
    assert "N = 6 groups (as in most steps of the file), n = 2 responses" in out
    assert "mine on this GPU, measured" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/missing.csv"], "missing.csv is not a file"),
        (["{tmp}/t.csv", "--profile", "h200"], "--profile h200 must be one of qwen3.5-35b-a3b-tp2, qwen3-30b"),
        (["{tmp}/t.csv", "--profile", "{tmp}/t.csv"], "--profile: decode profile {tmp}/t.csv"),
        (["{tmp}/t.csv", "--profile", "{tmp}/drafts.json"], "must have points of draft_depth 0, not only of (3,)"),
        (["{tmp}/t.csv", "--replicas", "0"], "--replicas 0 must be 1 or more"),
        (["{tmp}/t.csv", "--groups", "0"], "--groups 0 must be 1 or more"),
        (["{tmp}/t.csv", "--responses", "1"], "--responses 1 must be 2 or more"),
        (["{tmp}/t.csv", "--repeats", "1"], "--repeats 1 must be 2 or more"),
        (["{tmp}/t.csv", "--seed", "-1"], "--seed -1 must be 0 or more"),
        (["{tmp}/t.csv", "--replicas", "two"], "argument --replicas: invalid int value: 'two'"),
        (["{tmp}/t.csv", "--out", "{tmp}/t.csv/below"], "--out {tmp}/t.csv/below cannot be written: Not a directory"),
        (["{tmp}/one.csv"], "one.csv has one prompt at a checkpoint; it takes two or more"),
        (["{tmp}/zero.csv"], "zero.csv, line 3: a length is a whole number of tokens above 0, not '0'"),
        (["{tmp}/1.jsonl"], "rollout dumps hold text only; --tokenizer PATH must name the model's folder"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "t.csv", np.full((3, 2), 5))
    write(tmp_path / "one.csv", np.full((1, 2), 5))
    write(tmp_path / "zero.csv", np.array([[5], [0]]))
    (tmp_path / "1.jsonl").write_text('{"input": "a", "output": "b", "step": 1}\n')
    save_profile(DecodeModel((DecodePoint(1, 0.01, 3),)), tmp_path / "drafts.json")
    filled = [argument.format(tmp=tmp_path) for argument in arguments]
    assert stopped(["predict", filled[0], *SETUP, *filled[1:]]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("tailsieve: error: ")
    assert message.format(tmp=tmp_path) in captured.err and not captured.out


def test_a_table_does_not_say_how_many_groups_a_step_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", np.full((3, 2), 5))
    assert main(["predict", str(path), "--profile", "qwen3-4b", "--replicas", "2"]) == 2
    assert f"--groups is missing: {path} does not say how many prompts a step has" in capsys.readouterr().err


def stopped(arguments: list[str]) -> int | str | None:
    """Exit code, also of a refusal by the parser."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code
