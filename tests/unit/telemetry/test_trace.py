"""The trace keeps to the Trace Event Format, and holds what requests.parquet does."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tailsieve_rl import cli

from .written import write_run

NEEDED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "M": {"name", "ph", "pid", "tid", "args"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "i": {"name", "ph", "ts", "pid", "tid", "s"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
}
"""Phase -> keys that an event of it must have."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    out = tmp_path_factory.mktemp("traced")
    return [write_run(out / "uniform", "uniform"), write_run(out / "tailsieve")]


@pytest.fixture(scope="module")
def trace(folders: list[Path]) -> dict[str, Any]:
    file = folders[0].parent / "trace.json"
    assert cli.main(["report", *map(str, folders), "--trace", str(file)]) == 0
    return json.loads(file.read_text())


def _phase(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_every_event_has_what_its_phase_needs(trace: dict[str, Any]) -> None:
    assert {event["ph"] for event in trace["traceEvents"]} == set(NEEDED)
    for event in trace["traceEvents"]:
        assert NEEDED[event["ph"]] <= set(event), event
        assert isinstance(event["pid"], int) and event["pid"] > 0
        assert event["ph"] == "M" or (isinstance(event["ts"], int) and event["ts"] >= 0)
        assert event.get("dur", 0) >= 0
    assert {event["s"] for event in _phase(trace, "i")} == {"p"}
    assert all(isinstance(value, int | float) for event in _phase(trace, "C") for value in event["args"].values())


def test_a_thread_belongs_to_one_process_and_does_one_request_at_a_time(trace: dict[str, Any]) -> None:
    threads = defaultdict(list)
    for event in _phase(trace, "X"):
        threads[event["tid"]].append(event)
    for events in threads.values():
        assert len({event["pid"] for event in events}) == 1
        ordered = sorted(events, key=lambda event: event["ts"])
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(ordered))


def test_every_request_is_a_slice_of_its_replica(trace: dict[str, Any], folders: list[Path]) -> None:
    replicas = {e["pid"]: e["args"]["name"] for e in _phase(trace, "M") if e["name"] == "process_name"}
    slices = Counter(
        (replicas[event["pid"]], event["args"]["uid"], event["args"]["session"], event["args"]["status"])
        for event in _phase(trace, "X")
        if "uid" in event["args"]
    )
    rows = Counter(
        (f"{folder.name}: {row['replica']} (simulated)", row["uid"], row["session"], row["status"])
        for folder in folders
        for row in pq.read_table(folder / "requests.parquet").to_pylist()
    )
    assert slices == rows


def test_cutoffs_are_instants_of_the_run_that_has_them(trace: dict[str, Any]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in _phase(trace, "M") if e["name"] == "process_name"}
    cutoffs = Counter(names[event["pid"]] for event in _phase(trace, "i"))
    assert cutoffs["tailsieve: steps (simulated)"] == 3  # the last step leaves nothing over
    assert all(name.startswith("tailsieve") for name in cutoffs)


def test_a_flow_leads_from_a_thrown_away_request_to_the_one_that_generated_it_again(trace: dict[str, Any]) -> None:
    slices = defaultdict(list)
    for event in _phase(trace, "X"):
        slices[event["tid"]].append(event)

    def enclosing(flow: dict[str, Any]) -> dict[str, Any]:
        [found] = [e for e in slices[flow["tid"]] if e["ts"] <= flow["ts"] <= e["ts"] + e["dur"]]
        return found["args"]

    ends = {flow["id"]: enclosing(flow) for flow in _phase(trace, "f")}
    begins = {flow["id"]: enclosing(flow) for flow in _phase(trace, "s")}
    assert ends.keys() == begins.keys() and len(ends) == 3 * 4  # one group of four responses, three times
    for key, again in ends.items():
        first = begins[key]
        assert (first["uid"], first["session"], first["step"] + 1) == (again["uid"], again["session"], again["step"])
        assert (first["status"], again["attempt"]) == ("aborted", first["attempt"] + 1)


def test_steps_begin_together_in_all_runs(trace: dict[str, Any]) -> None:
    begins = defaultdict(set)
    for event in _phase(trace, "X"):
        if event["cat"] == "step":
            begins[event["name"]].add(event["ts"])
    assert len(begins) == 4 and all(len(found) == 1 for found in begins.values())


def test_the_number_of_running_requests_returns_to_zero(trace: dict[str, Any]) -> None:
    running = defaultdict(list)
    for event in _phase(trace, "C"):
        if event["name"] == "running":
            running[event["pid"]].append((event["ts"], event["args"]["requests"]))
    assert len(running) == 8
    assert all(max(n for _, n in of) > 1 and of[-1][1] == 0 and min(n for _, n in of) == 0 for of in running.values())
