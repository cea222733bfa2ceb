"""A split of a data set, read and checked as a whole, and its parquet file in verl's format."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailsieve_rl.data.catalogue import DataSet
from tailsieve_rl.data.lengths import prompt_tokens
from tailsieve_rl.data.problems import Problem, RowError, Unanswered
from tailsieve_rl.data.sources import Placed
from tailsieve_rl.data.templates import WORDING
from tailsieve_rl.input_error import InputError

MAX_PROMPT_TOKENS = 512
"""Longest prompt of the paper's rollouts (table A.1)."""

METADATA = b"tailsieve"
"""Key of the parquet file's metadata under which it says, in JSON, how it was made."""

NAMED_PLACES = 5

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("split", pa.string()), ("index", pa.int64())])),
    ]
)
"""verl's columns; the same for all data sets, so that a job can mix them. `index` is the row in the source, from 0."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A split that is ready to be written.

    Attributes:
        data_set, split: of which.
        source: file or hub repository that the rows are of.
        problems: those that are kept, with their row in the source.
        lengths: of the kept prompts, in `unit`.
        unit: "tokens", or "characters" without a tokenizer.
        unanswered: places of the rows that had no answer.
        too_long: prompts that were dropped for their length.
        most_tokens: the length they were dropped for; None: nothing was dropped.
    """

    data_set: DataSet
    split: str
    source: str
    problems: Sequence[tuple[int, Problem]]
    lengths: Sequence[int]
    unit: str
    unanswered: Sequence[str]
    too_long: int
    most_tokens: int | None

    def write(self, path: Path) -> None:
        """Write the parquet file, whole or not at all."""
        rows = [
            {
                "data_source": self.data_set.data_source,
                "prompt": problem.messages,
                "ability": self.data_set.ability,
                "reward_model": {"style": "rule", "ground_truth": problem.truth},
                "extra_info": {"split": self.split, "index": index},
            }
            for index, problem in self.problems
        ]
        made = json.dumps(self._made(), sort_keys=True).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA.with_metadata({METADATA: made})), partial)
        os.replace(partial, path)

    def _made(self) -> dict[str, Any]:
        return {
            "data_set": self.data_set.name,
            "split": self.split,
            "source": self.source,
            "template": WORDING[self.data_set.ability],
            "prompts": len(self.problems),
            "unanswered": len(self.unanswered),
            "too_long": self.too_long,
            "max_prompt_tokens": self.most_tokens,
        }

    def report(self) -> list[str]:
        """What became of the rows, and how long the prompts are, in words."""
        lines = [f"{len(self.problems)} prompts of {self.source}"]
        if self.unanswered:
            named = ", ".join(self.unanswered[:NAMED_PLACES]) + (", ..." if self.unanswered[NAMED_PLACES:] else "")
            lines.append(f"{len(self.unanswered)} left out that have no answer: {named}")
        if self.most_tokens is not None:
            lines.append(f"{self.too_long} dropped for more than {self.most_tokens} tokens")
        elif self.unit == "tokens":
            lines.append("none was dropped for its length: a test split stays whole without --max-prompt-tokens")
        else:
            lines.append("none was dropped for its length: without --tokenizer, tokens are not counted")
        p50, p90, p99 = np.percentile(self.lengths, [50, 90, 99])
        lines.append(f"prompt {self.unit}: P50 {p50:.0f}, P90 {p90:.0f}, P99 {p99:.0f}, longest {max(self.lengths)}")
        return lines


def read_split(
    data_set: DataSet,
    split: str,
    source: str,
    rows: Iterable[Placed],
    tokenizer: Any = None,
    most_tokens: int | None = None,
) -> Prepared:
    """Read and check a split.

    Args:
        data_set: how its rows are read.
        split: its name.
        source: what messages call the file or repository that the rows are of.
        rows: with their places.
        tokenizer: counts tokens; None: nothing is dropped for its length.
        most_tokens: longest prompt that is kept; None: any.

    Raises:
        InputError: naming the place of a malformed row, or if no prompt is left.
    """
    problems: list[tuple[int, Problem]] = []
    unanswered: list[str] = []
    for index, (place, row) in enumerate(rows):
        try:
            problems.append((index, data_set.read(row)))
        except RowError as error:
            if not (isinstance(error, Unanswered) and data_set.has_unanswered):
                raise InputError(f"{source}, {place}: {error}") from None
            unanswered.append(place)
    prompts = [problem.messages for _, problem in problems]
    if tokenizer is None:
        most_tokens, unit = None, "characters"
        lengths = [sum(len(message["content"]) for message in messages) for messages in prompts]
    else:
        lengths, unit = prompt_tokens(tokenizer, prompts), "tokens"
    kept = [i for i, length in enumerate(lengths) if most_tokens is None or length <= most_tokens]
    if not kept:
        limit = "" if most_tokens is None else f" of at most {most_tokens} tokens"
        raise InputError(f"{source}: no prompt{limit} is left of {len(problems)}")
    return Prepared(
        data_set=data_set,
        split=split,
        source=source,
        problems=[problems[i] for i in kept],
        lengths=[lengths[i] for i in kept],
        unit=unit,
        unanswered=unanswered,
        too_long=len(problems) - len(kept),
        most_tokens=most_tokens,
    )
