"""Rows with their place: of a local file, or of the Hugging Face hub."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tailsieve_rl.data.catalogue import DataSet
from tailsieve_rl.data.problems import Row
from tailsieve_rl.input_error import InputError

Placed = tuple[str, Row]
"""A row after its place in words, "line 3"."""


def local_rows(path: Path) -> Iterator[Placed]:
    """The rows of a .jsonl, .json (a list of objects), .parquet or .csv file.

    Raises:
        InputError: naming the file, and the place where there is one.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: must be a file of {', '.join(_READERS)}")
    try:
        yield from reader(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text in UTF-8 ({error.reason} at byte {error.start})") from None


def hub_rows(data_set: DataSet, split: str) -> Iterator[Placed]:
    """The rows of a split, downloaded or from the cache of `datasets`.

    Raises:
        InputError: if they cannot be had, with the reason.
    """
    import datasets

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(data_set.hub, data_set.config, split=data_set.splits[split])
    except Exception as error:  # every layer below has its own: hub, HTTP client, file formats
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{data_set.hub}: cannot be fetched from the hub ({reason}); give the file with --file"
        ) from None
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", row


def _jsonl(path: Path) -> Iterator[Placed]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _object(_parsed(line, f"{path}, line {number}"), path, f"line {number}")


def _json(path: Path) -> Iterator[Placed]:
    items = _parsed(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(items, list):
        raise InputError(f"{path}: must be a list of objects, is of type {type(items).__name__}")
    for number, item in enumerate(items, start=1):
        yield _object(item, path, f"item {number}")


def _parquet(path: Path) -> Iterator[Placed]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: is no parquet: {error}") from None
    for number, row in enumerate(rows, start=1):
        yield f"row {number}", row


def _csv(path: Path) -> Iterator[Placed]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        try:
            for row in reader:
                yield f"line {reader.line_num}", {name: value for name, value in row.items() if name is not None}
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: is no JSON: {error}") from None


def _object(row: Any, path: Path, place: str) -> Placed:
    if not isinstance(row, Mapping):
        raise InputError(f"{path}, {place}: must be an object, is of type {type(row).__name__}")
    return place, row


_READERS: Mapping[str, Callable[[Path], Iterator[Placed]]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".parquet": _parquet,
    ".csv": _csv,
}
