"""Requests packed for the page's timelines: a few bytes a request, in base64."""

import base64
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tailsieve_rl.routing.outcome import ResponseStatus
from tailsieve_rl.routing.plan import Pool
from tailsieve_rl.telemetry.runs import Run, RunFilesError

MOST_ROWS = 80_000
"""Requests whose bars a page holds, so that it stays under 3 MB: 17 bytes each, and the names of their groups."""

TICKS = 65_535
"""A step's time is stored in so many parts."""

NO_FIRST_TOKEN = TICKS
"""Stored for a request whose first token is not known: no request gets its first token at the end of its step."""

STATUS = {status.value: code for code, status in enumerate(ResponseStatus)}
TAIL_BIT = 4
"""In the byte of a request: the status is below it; set for a regenerated group."""


def timelines(runs: Sequence[Run], requests: Sequence[pa.Table], steps: range | None) -> list[dict[str, Any]]:
    """Of each run: its replicas, the steps that are drawn, and their requests, column by column.

    Args:
        runs: as the page compares them.
        requests: their requests.parquet.
        steps: to draw; None: as many as there is room for, evenly spaced.

    Raises:
        RunFilesError: if no run has one of these steps, or they have too many requests.
    """
    tables = [table.sort_by("step") for table in requests]
    numbers = [np.asarray(table["step"].to_numpy()) for table in tables]
    rows = Counter(int(step) for of in numbers for step in of)
    chosen = _asked(rows, steps) if steps is not None else _fitting(rows)
    return [_timeline(run, table, of, chosen) for run, table, of in zip(runs, tables, numbers, strict=True)]


def _asked(rows: Counter[int], steps: range) -> set[int]:
    found = {step for step in rows if step in steps}
    given = f"--steps {steps.start}-{steps.stop - 1}"
    if not found:
        raise RunFilesError(f"{given}: the runs have steps {min(rows)} to {max(rows)}")
    total = sum(rows[step] for step in found)
    if total > MOST_ROWS:
        most = max(1, MOST_ROWS * len(found) // total)
        raise RunFilesError(f"{given}: these have {total} requests, a page holds {MOST_ROWS}: give {most} steps")
    return found


def _fitting(rows: Counter[int]) -> set[int]:
    """As many steps as there is room for; the same in every run, so that they can be set side by side."""
    there = sorted(rows)
    room = len(there)
    while room > 1 and sum(rows[step] for step in _spaced(there, room)) > MOST_ROWS:
        room -= 1
    return set(_spaced(there, room))


def _spaced(there: Sequence[int], count: int) -> list[int]:
    """So many of them, evenly spaced, the first and the last among them."""
    return [there[i] for i in np.unique(np.linspace(0, len(there) - 1, count).round().astype(int))]


def _timeline(run: Run, table: pa.Table, numbers: np.ndarray, chosen: set[int]) -> dict[str, Any]:
    replicas = sorted(set(table["replica"].to_pylist()), key=_natural)
    lane = {name: i for i, name in enumerate(replicas)}
    drawn, blocks = [], []
    for line in run.steps:
        step = line["step"]
        first, last = np.searchsorted(numbers, [step, step + 1])
        if step not in chosen or first == last:
            continue
        rows = table.slice(first, last - first)
        groups, of_row = _groups(rows)
        span = max(float(np.max(rows["end_s"].to_numpy())), line["gen_time_s"])
        blocks.append(_packed(rows, of_row, lane, span))
        drawn.append({"step": step, "span": span, "rows": rows.num_rows, "groups": groups, "cutoff": _cutoff(line)})
    packed = {name: _base64([block[name] for block in blocks]) for name in (blocks[0] if blocks else ())}
    return {"replicas": replicas, "timelines": drawn, "packed": packed}


def _cutoff(line: dict[str, Any]) -> float | None:
    """When the bulk pool had what the step needed; None in a step that leaves nothing over."""
    return line["bulk_time_s"] if line["candidates"] else None


def _groups(rows: pa.Table) -> tuple[list[list[Any]], np.ndarray]:
    """(uid, prompt, attempt, prompt tokens) of each group, and which one a row belongs to."""
    index: dict[str, int] = {}
    groups: list[list[Any]] = []
    of_row = []
    keys = ("uid", "prompt_index", "attempt", "prompt_tokens")
    for uid, *rest in zip(*(rows[key].to_pylist() for key in keys), strict=True):
        if uid not in index:
            index[uid] = len(groups)
            groups.append([uid, *rest])
        of_row.append(index[uid])
    return groups, np.array(of_row)


def _packed(rows: pa.Table, of_row: np.ndarray, lane: dict[str, int], span: float) -> dict[str, np.ndarray]:
    def ticks(name: str) -> np.ndarray:
        seconds = rows[name].to_numpy()
        return np.clip(np.rint(seconds / span * TICKS), 0, TICKS) if span > 0 else np.zeros(len(seconds))

    first = ticks("first_token_s")
    known = np.isfinite(first)
    status = np.array([STATUS[s] for s in rows["status"].to_pylist()])
    tail = np.array([pool == Pool.TAIL.value for pool in rows["pool"].to_pylist()])
    return {
        "dispatch": ticks("dispatch_s").astype("<u2"),
        "first": np.where(known, np.minimum(np.where(known, first, 0), TICKS - 1), NO_FIRST_TOKEN).astype("<u2"),
        "end": ticks("end_s").astype("<u2"),
        "tokens": rows["response_tokens"].to_numpy().astype("<u4"),
        "group": of_row.astype("<u2"),
        "session": rows["session"].to_numpy().astype("<u2"),
        "lane": np.array([lane[name] for name in rows["replica"].to_pylist()]).astype("<u2"),
        "kind": (status + TAIL_BIT * (tail | (rows["attempt"].to_numpy() > 1))).astype("u1"),
    }


def _base64(blocks: Sequence[np.ndarray]) -> str:
    return base64.b64encode(np.concatenate(blocks).tobytes()).decode()


def _natural(name: str) -> list[int | str]:
    """replica-2 before replica-10."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", name)]
