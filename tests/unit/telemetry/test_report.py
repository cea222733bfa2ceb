"""`tailsieve report`: what the page holds, and what is refused."""

import base64
import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tailsieve_rl import cli
from tailsieve_rl.telemetry.page import timelines
from tailsieve_rl.telemetry.runs import RunFilesError, read_runs

from .written import write_run


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A baseline and a run, four steps each."""
    out = tmp_path_factory.mktemp("two")
    return [write_run(out / "uniform", "uniform"), write_run(out / "tailsieve")]


def _page(out: Path, *arguments: Any) -> dict[str, Any]:
    """What the page of these runs draws."""
    assert cli.main(["report", *map(str, arguments), "--out", str(out / "page.html")]) == 0
    return _data(out / "page.html")


def _data(page: Path) -> dict[str, Any]:
    start = '<script id="data" type="application/json">'
    return json.loads(page.read_text().split(start)[1].split("</script>")[0])


def _refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The one line that a bad call ends with."""
    assert cli.main(["report", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert captured.out == ""
    return line


def test_the_page_loads_nothing(two: list[Path], tmp_path: Path) -> None:
    _page(tmp_path, *two)
    text = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert not any(tag in text for tag in (" src=", "<link", "@import", "url("))


def test_its_numbers_are_those_of_the_steps(two: list[Path], tmp_path: Path) -> None:
    baseline, run = _page(tmp_path, *two)["runs"]
    steps = [[json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()] for folder in two]
    times, theirs = ([step["gen_time_s"] for step in of] for of in reversed(steps))
    assert run["genTime"][0] == pytest.approx(median(times))
    assert run["speedup"][0] == pytest.approx(1 / median(ours / base for ours, base in zip(times, theirs, strict=True)))
    assert run["speedup"][1] <= run["speedup"][0] <= run["speedup"][2] and baseline["speedup"] is None
    assert run["steps"]["q"] == [step["q"] for step in steps[1]]
    assert run["steps"]["predicted_s"][0] is None and run["steps"]["predicted_s"][1] > 0
    requests = pq.read_table(two[1] / "requests.parquet").to_pylist()
    thrown = sum(row["response_tokens"] for row in requests if row["status"] != "consumed")
    assert run["wasted"] == pytest.approx(thrown / sum(row["response_tokens"] for row in requests))
    consumed = [row["response_tokens"] for row in requests if row["status"] == "consumed"]
    assert run["lengths"] == [round(float(np.percentile(consumed, p))) for p in (50, 90, 100)]


def test_every_request_is_in_it_where_it_ran(two: list[Path], tmp_path: Path) -> None:
    run = _page(tmp_path, *two)["runs"][1]
    rows = pq.read_table(two[1] / "requests.parquet").to_pylist()
    kinds = {
        "dispatch": "<u2",
        "first": "<u2",
        "end": "<u2",
        "tokens": "<u4",
        "group": "<u2",
        "lane": "<u2",
        "kind": "u1",
    }
    packed = {name: np.frombuffer(base64.b64decode(run["packed"][name]), kind) for name, kind in kinds.items()}
    steps = [step for step in run["timelines"] for _ in range(step["rows"])]
    assert len(rows) == len(steps) == len(packed["end"])
    for i, (row, step) in enumerate(zip(rows, steps, strict=True)):
        assert step["groups"][packed["group"][i]][0] == row["uid"]
        assert run["replicas"][packed["lane"][i]] == row["replica"]
        assert packed["tokens"][i] == row["response_tokens"]
        assert packed["end"][i] / timelines.TICKS * step["span"] == pytest.approx(
            row["end_s"], abs=step["span"] / 60_000
        )
        assert (packed["kind"][i] >= timelines.TAIL_BIT) == (row["pool"] == "tail")
        assert packed["kind"][i] % timelines.TAIL_BIT == timelines.STATUS[row["status"]]
        assert packed["first"][i] == timelines.NO_FIRST_TOKEN or row["first_token_s"] is not None
    cutoffs = [step["cutoff"] for step in run["timelines"]]
    assert [cutoff is None for cutoff in cutoffs] == [False, False, False, True]


def test_a_backend_that_is_not_real_is_named(tmp_path: Path) -> None:
    real = _page(tmp_path, write_run(tmp_path / "vllm", backend="vllm", steps=1))
    emulated = _page(tmp_path, write_run(tmp_path / "emulated", backend="emulated", steps=1))
    assert (real["runs"][0]["measured"], emulated["runs"][0]["measured"]) == (True, False)


def test_what_no_run_has_is_said_once(two: list[Path], tmp_path: Path) -> None:
    missing = _page(tmp_path, *two)["missing"]
    assert [line.split()[0] for line in missing] == ["rewards", "drafts"]
    rewarded = write_run(
        tmp_path / "rewarded", steps=2, reward_mean=0.5, off_policy_trajectories=0, accept_length_bulk=2.0
    )
    assert _page(tmp_path, rewarded)["missing"] == []


def test_a_name_cannot_become_markup(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a<script>alert(1)<!--b", steps=1)
    assert _page(tmp_path, folder)["runs"][0]["name"] == folder.name
    assert "<script>alert" not in (tmp_path / "page.html").read_text()


def test_a_page_with_too_many_requests_draws_evenly_spaced_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", steps=9)
    monkeypatch.setattr(timelines, "MOST_ROWS", 120)  # a step has 36 or so
    drawn = [step["step"] for step in _page(tmp_path, run)["runs"][0]["timelines"]]
    assert drawn == [1, 5, 9]
    asked = [step["step"] for step in _page(tmp_path, run, "--steps", "2-3")["runs"][0]["timelines"]]
    assert asked == [2, 3]
    capsys.readouterr()
    assert "a page holds 120: give" in _refused(capsys, run, "--out", tmp_path / "b.html", "--steps", "1-9")


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"groups": 16}, "groups_per_step is 8 in one, 16 in the other"),
        ({"responses": 2}, "responses_per_group is 4 in one, 2 in the other"),
        ({"model": "models/another"}, "model is a-model in one, another in the other"),
        ({"backend": "emulated"}, "backend is simulated in one, emulated in the other"),
    ],
)
def test_runs_of_different_work_are_refused(
    two: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], other: dict[str, Any], says: str
) -> None:
    run = write_run(tmp_path / "other", steps=1, **other)
    assert f"cannot be compared: {says}" in _refused(capsys, two[0], run, "--out", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_same_model_in_two_places_is_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "a", steps=1, model="/here/a-model/")
    write_run(tmp_path / "b", steps=1, model="a-model")
    assert [run.name for run in read_runs([tmp_path / "a", tmp_path / "b"])] == ["a", "b"]


def test_names_of_runs_tell_them_apart(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / folder / "run", steps=1) for folder in "ab"]
    assert [run.name for run in read_runs(paths)] == ["a/run", "b/run"]
    with pytest.raises(RunFilesError, match="is given twice"):
        read_runs([paths[0], paths[0]])


def _without_column(run: Path) -> None:
    table = pq.read_table(run / "requests.parquet")
    pq.write_table(table.drop_columns(["end_s"]), run / "requests.parquet")


def _without_rows(run: Path) -> None:
    pq.write_table(pq.read_table(run / "requests.parquet").slice(0, 0), run / "requests.parquet")


def _without_metric(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    del lines[1]["bulk_time_s"]
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_without_column, "requests.parquet has no column end_s"),
        (_without_metric, "steps.jsonl: step 2 has no bulk_time_s"),
        (lambda run: (run / "requests.parquet").unlink(), "holds no requests.parquet"),
        (lambda run: (run / "requests.parquet").write_text("no"), "requests.parquet cannot be read"),
        (_without_rows, "requests.parquet is empty"),
        (lambda run: (run / "summary.json").unlink(), "holds no summary.json"),
        (lambda run: (run / "summary.json").write_text("{}"), "summary.json has no mode"),
        (lambda run: (run / "steps.jsonl").write_text(""), "steps.jsonl is empty"),
        (lambda run: (run / "steps.jsonl").write_text('{"step": 1'), "steps.jsonl cannot be read"),
    ],
)
def test_a_run_that_lacks_something_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Any, says: str
) -> None:
    run = write_run(tmp_path / "run", steps=2)
    spoil(run)
    assert says in _refused(capsys, run, "--out", tmp_path / "page.html", "--trace", tmp_path / "trace.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "needs --out FILE, --trace FILE or --tensorboard DIR"),
        (["--out", "."], "--out .: is a folder"),
        (["--out", "summary.json/page.html"], "summary.json/page.html cannot be written"),
        (["--out", "page.html", "--steps", "3-1"], "--steps 3-1: must be one step, or a range"),
        (["--out", "page.html", "--steps", "7"], "--steps 7-7: the runs have steps 1 to 4"),
        (["--trace", "trace.json", "--steps", "7-9"], "--steps 7-9: no run has one of these"),
        (["--tensorboard", "summary.json"], "--tensorboard summary.json: is a file"),
    ],
)
def test_options_that_cannot_work_are_refused(
    two: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    monkeypatch.chdir(two[0])
    before = sorted(two[0].iterdir())
    assert says in _refused(capsys, two[0], *options)
    assert sorted(two[0].iterdir()) == before


def test_a_run_older_than_drafts_is_shown(two: list[Path], tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", steps=2)
    table = pq.read_table(old / "requests.parquet")
    pq.write_table(table.drop_columns(["draft_depth", "drafted_tokens", "accepted"]), old / "requests.parquet")
    assert len(_page(tmp_path, old)["runs"][0]["timelines"]) == 2
