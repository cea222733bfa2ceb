"""Measured response lengths from a file: a CSV table with a row a response, or a run's requests.parquet."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

PROMPT_COLUMNS = ("prompt_id", "prompt_index", "prompt", "uid")
CHECKPOINT_COLUMNS = ("checkpoint", "step")
TOKEN_COLUMNS = ("response_tokens", "tokens", "length")
"""Names that a column may have; the first one found is taken."""

CONSUMED = "consumed"
"""Status of the responses that were trained on; those aborted or retried have no final length."""


class TraceError(ValueError):
    """A file of lengths that cannot be used; the message names the file, the line and the value."""


@dataclass(frozen=True)
class LengthTable:
    """One row a response, in the file's order.

    Attributes:
        prompt: (rows,) number of its prompt, 0 to prompts - 1, in order of appearance.
        checkpoint: (rows,) position of its checkpoint in `checkpoints`.
        tokens: (rows,) its length, 1 or more.
        checkpoints: names of the checkpoints, in numerical order where they are numbers; one "" without the column. Of
            a run they are visits: "1" is the first step in which a prompt was trained on, "2" the next, an epoch later.
        source: the file.
        groups: N, the number of prompts that most steps of a run have; None if the file is not of a run.
    """

    prompt: Ints
    checkpoint: Ints
    tokens: Ints
    checkpoints: tuple[str, ...]
    source: str
    groups: int | None = None

    @property
    def prompts(self) -> int:
        """Number of prompts."""
        return int(self.prompt.max()) + 1


def read_lengths(path: str | Path) -> LengthTable:
    """Read a table of lengths.

    Args:
        path: a .parquet file with the columns of a run's requests.parquet, of which consumed responses count; any other
            file is CSV with a header: a prompt, optionally a checkpoint or step, and a number of tokens.

    Raises:
        TraceError: if the file cannot be read, lacks a column, has no rows, or a length is not a whole number above 0.
    """
    file = Path(path)
    if not file.is_file():
        raise TraceError(f"{file} is not a file")
    columns, lines = _parquet(file) if file.suffix == ".parquet" else _csv(file)
    prompt = _column(columns, PROMPT_COLUMNS, file)
    tokens = _column(columns, TOKEN_COLUMNS, file)
    checkpoint = next((columns[name] for name in CHECKPOINT_COLUMNS if name in columns), [""] * len(tokens))
    if not tokens:
        raise TraceError(f"{file} has no rows")
    lengths = [_length(value, f"{file}, {line}") for value, line in zip(tokens, lines, strict=True)]
    make = run_table if "status" in columns else _table
    return make(prompt, checkpoint, lengths, str(file))


def run_table(prompt: Sequence[Any], step: Sequence[Any], tokens: Sequence[int], source: str) -> LengthTable:
    """The table of a run's consumed responses: (rows,) prompts, steps and lengths."""
    drawn = Counter(at for at, _ in set(zip(step, prompt, strict=True)))
    return _table(prompt, _visits(prompt, step), tokens, source, groups=mode(drawn.values()))


def _table(
    prompt: Sequence[Any], checkpoint: Sequence[Any], tokens: Sequence[int], source: str, groups: int | None = None
) -> LengthTable:
    names = tuple(sorted(dict.fromkeys(map(str, checkpoint)), key=_numerical))
    place = {name: i for i, name in enumerate(names)}
    number: dict[Any, int] = {}
    return LengthTable(
        prompt=np.array([number.setdefault(value, len(number)) for value in prompt], np.int64),
        checkpoint=np.array([place[str(value)] for value in checkpoint], np.int64),
        tokens=np.array(tokens, np.int64),
        checkpoints=names,
        source=source,
        groups=groups,
    )


def _csv(file: Path) -> tuple[dict[str, Sequence[Any]], list[str]]:
    """Columns by name, and where each row stands."""
    try:
        with open(file, newline="", encoding="utf-8-sig") as text:
            reader = csv.reader(text)
            numbered = [(reader.line_num, row) for row in reader if row]
    except OSError as error:
        raise TraceError(f"{file}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{file} is not a CSV file: {error}") from error
    header = [name.strip() for name in numbered[0][1]] if numbered else []
    for line, row in numbered:
        if len(row) != len(header):
            raise TraceError(f"{file}, line {line}: {len(row)} values for {len(header)} columns")
    rows = numbered[1:]
    return {name: [row[i] for _, row in rows] for i, name in enumerate(header)}, [f"line {line}" for line, _ in rows]


def _parquet(file: Path) -> tuple[dict[str, Sequence[Any]], list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file).to_pydict()
    except (OSError, pa.ArrowException) as error:
        raise TraceError(f"{file} is not a parquet file: {str(error).splitlines()[0]}") from error
    rows = range(len(next(iter(table.values()), [])))
    kept = [i for i in rows if table["status"][i] == CONSUMED] if "status" in table else list(rows)
    return {name: [values[i] for i in kept] for name, values in table.items()}, [f"row {i + 1}" for i in kept]


def _column(columns: dict[str, Sequence[Any]], names: tuple[str, ...], file: Path) -> Sequence[Any]:
    for name in names:
        if name in columns:
            return columns[name]
    raise TraceError(f"{file} has none of the columns {', '.join(names)}; it has {', '.join(columns) or 'none'}")


def _visits(prompt: Sequence[Any], step: Sequence[Any]) -> list[int]:
    """How often the prompt had been seen by each row's step: a run never has the same prompts in neighbouring steps."""
    seen: dict[Any, set[Any]] = {}
    for value, at in zip(prompt, step, strict=True):
        seen.setdefault(value, set()).add(at)
    order = {value: {at: i + 1 for i, at in enumerate(sorted(steps))} for value, steps in seen.items()}
    return [order[value][at] for value, at in zip(prompt, step, strict=True)]


def _length(value: Any, where: str) -> int:
    try:
        length = int(value)
    except (TypeError, ValueError):
        length = 0
    if length < 1:
        raise TraceError(f"{where}: a length is a whole number of tokens above 0, not {value!r:.60}")
    return length


def _numerical(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return float("inf"), name
