"""Timelines as a Chrome trace (the Trace Event Format, JSON), which Perfetto and chrome://tracing open.

A process is a replica of a run, a thread one of its request slots, a slice a request. Steps follow each other and begin
together in all runs. Flows lead from a request that was thrown away to the one that generated it again.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tailsieve_rl import __version__
from tailsieve_rl.routing.outcome import ResponseStatus
from tailsieve_rl.telemetry.runs import Run, RunFilesError

REQUIRED = ("step", "q", "m", "gen_time_s", "bulk_time_s", "candidates")

SLOTS = 1_000_000
"""Thread ids of a process: they differ between processes, since Perfetto names a thread by its id alone."""

Event = dict[str, Any]
Row = dict[str, Any]


def trace(runs: Sequence[Run], steps: range | None = None) -> str:
    """The trace as JSON.

    Args:
        runs: their names start the names of their processes.
        steps: the steps to put in; None: all.

    Raises:
        RunFilesError: if a run lacks what the trace cannot do without, or no run has one of the steps.
    """
    rows = [_by_step(run, steps) for run in runs]
    if not any(rows):
        assert steps is not None
        raise RunFilesError(f"--steps {steps.start}-{steps.stop - 1}: no run has one of these")
    starts = _starts(runs, rows)
    ids = count(1)
    events = [event for run, of in zip(runs, rows, strict=True) for event in _RunTrace(run, of, starts, ids).events()]
    about = {"tailsieve-rl": __version__, "runs": {run.name: run.summary["backend"] for run in runs}}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}, separators=(",", ":"))


def _by_step(run: Run, steps: range | None) -> dict[int, list[Row]]:
    run.require(REQUIRED)
    found: dict[int, list[Row]] = defaultdict(list)
    for row in run.requests().to_pylist():
        if steps is None or row["step"] in steps:
            found[row["step"]].append(row)
    return found


def _starts(runs: Sequence[Run], rows: Sequence[dict[int, list[Row]]]) -> dict[int, int]:
    """Where each step begins, microseconds: when the step before has ended in every run."""
    spans: dict[int, float] = defaultdict(float)
    for run, of in zip(runs, rows, strict=True):
        for line in run.steps:
            if line["step"] in of:
                ends = (row["end_s"] for row in of[line["step"]])
                spans[line["step"]] = max(spans[line["step"]], line["gen_time_s"], *ends)
    starts, now = {}, 0
    for step in sorted(spans):
        starts[step] = now
        now += _us(spans[step]) + 1
    return starts


@dataclass(slots=True)
class _RunTrace:
    """The events of one run; `ids` gives processes and flows their numbers, each once."""

    run: Run
    rows: dict[int, list[Row]]
    starts: dict[int, int]
    ids: Iterator[int]
    _replicas: dict[str, int] = field(default_factory=dict)
    _slots: set[int] = field(default_factory=set)
    _thrown_away: dict[tuple[str, int], Event] = field(default_factory=dict)

    def events(self) -> Iterator[Event]:
        """Names first, then what happened, step by step."""
        pid = next(self.ids)
        backend = "" if self.run.measured else f" ({self.run.summary['backend']})"
        yield _name("process", pid, pid * SLOTS, f"{self.run.name}: steps{backend}")
        for name in sorted({row["replica"] for rows in self.rows.values() for row in rows}):
            self._replicas[name] = next(self.ids)
            yield _name(
                "process", self._replicas[name], self._replicas[name] * SLOTS, f"{self.run.name}: {name}{backend}"
            )
        for line in self.run.steps:
            if line["step"] in self.starts and line["step"] in self.rows:
                yield from self._step(pid, line)

    def _step(self, pid: int, line: dict[str, Any]) -> Iterator[Event]:
        start, end = self.starts[line["step"]], self.starts[line["step"]] + _us(line["gen_time_s"])
        at = {"pid": pid, "tid": pid * SLOTS}
        yield {**at, "ph": "X", "name": f"step {line['step']}", "cat": "step", **_from_to(start, end), "args": line}
        for key in ("q", "m"):
            yield {**at, "ph": "C", "name": key, "ts": start, "args": {key: line[key]}}
        if line["candidates"]:
            cutoff = start + _us(line["bulk_time_s"])
            for process in (pid, *self._replicas.values()):
                place = {"pid": process, "tid": process * SLOTS}
                yield {**place, "ph": "i", "s": "p", "name": "cutoff", "cat": "step", "ts": cutoff}
        for name, process in self._replicas.items():
            mine = sorted((row for row in self.rows[line["step"]] if row["replica"] == name), key=_order)
            for slot, row in enumerate(mine, 1):
                yield from self._request(process, process * SLOTS + slot, slot, row, start)
            yield from _running(process, mine, start)

    def _request(self, pid: int, tid: int, slot: int, row: Row, start: int) -> Iterator[Event]:
        at = {"pid": pid, "tid": tid}
        title = f"prompt {row['prompt_index']}, response {row['session']}"
        moments = _from_to(start + _us(row["dispatch_s"]), start + _us(row["end_s"]))
        kind = row["pool"] if row["status"] == ResponseStatus.CONSUMED.value else row["status"]
        if tid not in self._slots:
            self._slots.add(tid)
            yield _name("thread", pid, tid, f"slot {slot}")
        yield {**at, "ph": "X", "name": title, "cat": kind, **moments, "args": row}
        key = (row["uid"], row["session"])
        before = self._thrown_away.pop(key, None)
        if before is not None:
            flow = {"name": "generated again", "cat": "regeneration", "id": next(self.ids)}
            yield {**before, **flow, "ph": "s"}
            yield {**at, **flow, "ph": "f", "bp": "e", "ts": moments["ts"]}
        if row["status"] == ResponseStatus.ABORTED.value:
            self._thrown_away[key] = {**at, "ts": moments["ts"] + moments["dur"] // 2}


def _order(row: Row) -> tuple[float, float, str, int]:
    return row["dispatch_s"], row["end_s"], row["uid"], row["session"]


def _running(pid: int, rows: Sequence[Row], start: int) -> Iterator[Event]:
    """The number of requests that a replica has, over time."""
    changes: dict[int, int] = defaultdict(int)
    for row in rows:
        changes[start + _us(row["dispatch_s"])] += 1
        changes[start + _us(row["end_s"])] -= 1
    running = 0
    for moment in sorted(changes):
        running += changes[moment]
        yield {
            "pid": pid,
            "tid": pid * SLOTS,
            "ph": "C",
            "name": "running",
            "ts": moment,
            "args": {"requests": running},
        }


def _name(what: str, pid: int, tid: int, name: str) -> Event:
    return {"pid": pid, "tid": tid, "ph": "M", "name": f"{what}_name", "args": {"name": name}}


def _from_to(start: int, end: int) -> dict[str, int]:
    return {"ts": start, "dur": max(0, end - start)}


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
