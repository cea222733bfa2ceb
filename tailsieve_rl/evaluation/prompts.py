"""The problems of all sets as one file of prompts, each with the number of its responses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailsieve_rl.config.evaluation import SAMPLES
from tailsieve_rl.data.command import file_name
from tailsieve_rl.data.lengths import prompt_tokens
from tailsieve_rl.data.prepared import METADATA, SCHEMA
from tailsieve_rl.evaluation.benchmarks import SPLIT
from tailsieve_rl.input_error import InputError


@dataclass(frozen=True, slots=True)
class ProblemSet:
    """The problems of one set.

    Attributes:
        samples: responses a problem.
        rows: verl's rows, in the order of their file.
        made: what the file says of how it was made; {} if it says nothing.
    """

    samples: int
    rows: list[dict[str, Any]]
    made: Mapping[str, Any]

    @property
    def truths(self) -> list[str]:
        return [row["reward_model"]["ground_truth"] for row in self.rows]

    @property
    def digest(self) -> str:
        """Of prompts and truths: equal for the same problems with the same template, in the same order."""
        text = json.dumps([[row["prompt"], row["reward_model"]["ground_truth"]] for row in self.rows], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_sets(folder: Path, samples: Mapping[str, int]) -> dict[str, ProblemSet]:
    """The sets' files in a folder, as `tailsieve data` writes them.

    Raises:
        InputError: naming a file that is missing, of another set, or without the columns.
    """
    return {name: _read(folder / file_name(name, SPLIT), name, count) for name, count in samples.items()}


def _read(path: Path, name: str, samples: int) -> ProblemSet:
    if not path.is_file():
        raise InputError(f"{path}: no such file; tailsieve data {name} --split {SPLIT} --out {path.parent} makes it")
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: is no parquet: {error}") from None
    missing = [column for column in SCHEMA.names if column not in table.column_names]
    if missing:
        raise InputError(f"{path}: has no column {', '.join(missing)}; it has {', '.join(table.column_names)}")
    made = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
    if made.get("data_set", name) != name:
        raise InputError(f"{path}: holds {made['data_set']}, not {name}")
    try:
        rows = table.select(SCHEMA.names).cast(SCHEMA).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path}: its columns are not as tailsieve data writes them: {error}") from None
    if not rows:
        raise InputError(f"{path}: holds no problem")
    return ProblemSet(samples, rows, made)


def write_prompts(sets: Mapping[str, ProblemSet], path: Path) -> None:
    """All problems, set after set, with a column for the number of responses."""
    rows = [{**row, SAMPLES: found.samples} for found in sets.values() for row in found.rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA.append(pa.field(SAMPLES, pa.int32()))), path)


def longest_prompt(sets: Mapping[str, ProblemSet], tokenizer: Any) -> int:
    """Tokens of the longest prompt."""
    return max(prompt_tokens(tokenizer, [row["prompt"] for found in sets.values() for row in found.rows]))
