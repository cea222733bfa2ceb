"""Responses judged by the mathematical reward."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailsieve_rl.config.evaluation import stream
from tailsieve_rl.evaluation.prompts import ProblemSet

VERIFIERS = min(4, os.cpu_count() or 1)
"""At most as many as verl has processes that verify: what waits for one would run into its time limit."""

JUDGED = pa.schema(
    [
        ("set", pa.string()),
        ("problem", pa.int64()),
        ("sample", pa.int32()),
        ("round", pa.int32()),
        ("response", pa.string()),
        ("ground_truth", pa.string()),
        ("correct", pa.bool_()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
    ]
)
"""responses.parquet of a model: a row for each response. `problem` is its row in the set's file."""

Judged = list[dict[str, Any]]


def judge(sets: Mapping[str, ProblemSet], rollouts: Path) -> Judged:
    """All responses of a job with their verdicts, in the order of sets, problems and samples.

    Args:
        sets: the problems, in the order of the job's prompts.
        rollouts: folder of the job's streams.
    """
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for samples in {problems.samples for problems in sets.values()}:
        for row in pq.read_table(rollouts / stream(samples) / "responses.parquet").to_pylist():
            found[row["prompt_index"], row["session"]] = row
    rows, index = [], 0
    for name, problems in sets.items():
        for problem, truth in enumerate(problems.truths):
            for sample in range(problems.samples):
                kept = found[index, sample]
                rows.append({**kept, "set": name, "problem": problem, "sample": sample, "ground_truth": truth})
            index += 1
    with ThreadPoolExecutor(VERIFIERS) as verifiers:
        verdicts = list(verifiers.map(_correct, rows))
    return [
        {name: value for name, value in {**row, "correct": correct}.items() if name in JUDGED.names}
        for row, correct in zip(rows, verdicts, strict=True)
    ]


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the judged responses, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    pq.write_table(pa.Table.from_pylist(list(rows), JUDGED), partial)
    os.replace(partial, path)


def _correct(row: Mapping[str, Any]) -> bool:
    from tailsieve_rl.algorithms.math_reward import compute_score

    return compute_score(row["set"], row["response"], row["ground_truth"])["score"] == 1.0
