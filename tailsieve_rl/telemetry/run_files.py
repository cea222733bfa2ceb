"""The result files of a run: requests.parquet, steps.jsonl, summary.json."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus, StepOutcome
from tailsieve_rl.telemetry.speculation import speculation_figures

REQUESTS = pa.schema(
    [
        ("step", pa.int32()),
        ("uid", pa.string()),
        ("prompt_index", pa.int64()),
        ("session", pa.int32()),
        ("attempt", pa.int32()),
        ("pool", pa.string()),
        ("replica", pa.string()),
        ("status", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("response_tokens", pa.int32()),
        ("dispatch_s", pa.float64()),
        ("first_token_s", pa.float64()),
        ("end_s", pa.float64()),
        ("draft_depth", pa.int32()),  # none where it changed with the batch
        ("drafted_tokens", pa.int32()),
        ("accepted", pa.list_(pa.int32())),
    ]
)
REWRITTEN_ROWS = 100_000
"""Rows of requests.parquet up to which it is rewritten at every step: some tens of milliseconds."""

REWARD_STEPS = 3
"""Steps at each end of a run that reward_first and reward_last are the mean of."""


def response_lengths(lengths: Sequence[int]) -> dict[str, float]:
    """Mean, median, 90th percentile and maximum of response lengths, tokens."""
    p50, p90 = np.percentile(lengths, [50, 90])
    return {
        "response_length_mean": float(np.mean(lengths)),
        "response_length_p50": float(p50),
        "response_length_p90": float(p90),
        "response_length_max": float(max(lengths)),
    }


def truncated_fraction(lengths: Sequence[int], longest: int) -> float:
    """Share of the responses that reached the longest length allowed, tokens."""
    return sum(length >= longest for length in lengths) / len(lengths)


def outcome_line(outcome: StepOutcome) -> dict[str, Any]:
    """What steps.jsonl says of a step's routing and lengths; times in seconds, lengths in tokens."""
    return {
        "q": outcome.plan.q,
        "m": outcome.plan.m,
        "q_next": outcome.plan.q_next,
        "tail_time_s": outcome.tail_time_s,
        "bulk_time_s": outcome.bulk_time_s,
        "gen_time_s": outcome.gen_time_s,
        "imbalance": outcome.imbalance,
        "consumed_groups": len(outcome.consumed),
        "candidates": len(outcome.candidates),
        "aborted_tokens": outcome.aborted_tokens,
        "wasted_fraction": outcome.wasted_fraction,
        "retries": outcome.retries,
        **speculation_figures(outcome),
        **response_lengths(outcome.lengths),
    }


class RunFiles:
    """Writes the three files as a run goes on; a resumed run continues them.

    Args:
        out: folder.
        mode: trainer mode.
        backend: rollout backend.
        groups: N, groups a step.
        responses: n, responses a group.
        model: what the engines decode: a model, or a decode profile. Runs of different ones cannot be compared.
        resumed_after: last step of the checkpoint that the run goes on from; 0 for a new run. Later steps that an
            interrupted run had written are dropped.
    """

    def __init__(
        self,
        out: str,
        mode: str,
        backend: str,
        groups: int,
        responses: int,
        model: str | None = None,
        resumed_after: int = 0,
    ):
        self._out = Path(out)
        self._out.mkdir(parents=True, exist_ok=True)
        self._head = {
            "mode": mode,
            "backend": backend,
            **({} if model is None else {"model": model}),
            "groups_per_step": groups,
            "responses_per_group": responses,
        }
        self._steps = [s for s in self._read_steps() if s["step"] <= resumed_after]
        self._written = self._read_requests(resumed_after)
        self._buffer: list[pa.Table] = []
        self._write_steps()

    def add_step(self, step: int, records: Iterable[ResponseRecord], line: dict[str, Any], last: bool = False) -> None:
        """Add one finished step. Its line is written at once, its rows at the latest when a checkpoint is.

        Args:
            step: its number.
            records: every dispatch of every response.
            line: what steps.jsonl says of it.
            last: the run ends with it.
        """
        columns: dict[str, list[Any]] = {name: [] for name in REQUESTS.names}
        for record in records:
            columns["step"].append(step)
            for name in REQUESTS.names[1:]:
                value = getattr(record, name)
                columns[name].append(None if name == "draft_depth" and not isinstance(value, int) else value)
        self._buffer.append(pa.table(columns, schema=REQUESTS))
        self._steps.append({"step": step, **line})
        with open(self._out / "steps.jsonl", "a") as file:
            file.write(json.dumps(self._steps[-1]) + "\n")
        # A large file is rewritten when it has grown by a tenth, which keeps the cost of a run linear in its rows.
        added = sum(table.num_rows for table in self._buffer)
        if last or self._written.num_rows <= REWRITTEN_ROWS or 10 * added >= self._written.num_rows:
            self.flush()

    def flush(self) -> None:
        """Write everything that was added."""
        self._written = pa.concat_tables([self._written, *self._buffer])
        self._buffer = []
        write_whole(self._out / "requests.parquet", lambda path: pq.write_table(self._written, path))
        summary = json.dumps(self._summary(), indent=2) + "\n"
        write_whole(self._out / "summary.json", lambda path: Path(path).write_text(summary))

    def _summary(self) -> dict[str, Any]:
        steps = self._steps
        summary: dict[str, Any] = {**self._head, "steps": len(steps)}
        if not steps:
            return summary
        consumed = pa.compute.equal(self._written["status"], ResponseStatus.CONSUMED.value)
        lengths = self._written.filter(consumed)["response_tokens"].to_numpy()
        return {
            **summary,
            "consumed_groups": sum(s["consumed_groups"] for s in steps),
            "gen_time_s_median": median(s["gen_time_s"] for s in steps),
            **response_lengths(lengths),
            **_trained(steps),
        }

    def _read_steps(self) -> list[dict[str, Any]]:
        path = self._out / "steps.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines() if line]

    def _read_requests(self, resumed_after: int) -> pa.Table:
        path = self._out / "requests.parquet"
        if not resumed_after or not path.exists():
            return REQUESTS.empty_table()
        table = pq.read_table(path)
        return table.filter(pa.compute.less_equal(table["step"], resumed_after))

    def _write_steps(self) -> None:
        lines = "".join(json.dumps(step) + "\n" for step in self._steps)
        write_whole(self._out / "steps.jsonl", lambda path: Path(path).write_text(lines))


def _trained(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What only a run that trains has."""
    if any("reward_mean" not in step for step in steps):
        return {}
    rewards = [step["reward_mean"] for step in steps]
    first, last = rewards[:REWARD_STEPS], rewards[-REWARD_STEPS:]
    return {
        "reward_first": sum(first) / len(first),
        "reward_last": sum(last) / len(last),
        "off_policy_trajectories": sum(step["off_policy_trajectories"] for step in steps),
    }


def write_whole(path: Path, write: Any) -> None:
    """Write a file whole or not at all."""
    partial = f"{path}.partial"
    write(partial)
    os.replace(partial, path)
