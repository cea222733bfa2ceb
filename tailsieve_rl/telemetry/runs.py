"""Runs, read back from their result files, and what may be said of two of them."""

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailsieve_rl.input_error import InputError
from tailsieve_rl.telemetry.run_files import REQUESTS

Step = Mapping[str, Any]
"""A line of steps.jsonl."""

SHARED = ("groups_per_step", "responses_per_group", "backend", "model")
"""What runs must have in common, where both say it: else their step times are of different work."""


_DRAFTS = ("draft_depth", "drafted_tokens", "accepted")


class RunFilesError(InputError):
    """A folder that does not hold a finished run, or runs that cannot be compared."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        name: what tells it from the others: the end of its path.
        folder: where its files are.
        summary: summary.json.
        steps: the lines of steps.jsonl.
    """

    name: str
    folder: Path
    summary: dict[str, Any]
    steps: list[dict[str, Any]]

    @property
    def measured(self) -> bool:
        """Whether its seconds are those of real engines."""
        return self.summary["backend"] not in ("emulated", "simulated")

    def column(self, key: str) -> list[Any]:
        """One value a step; None where a step does not have it."""
        return [step.get(key) for step in self.steps]

    def require(self, keys: Sequence[str]) -> None:
        """Refuse a run whose steps lack one of these.

        Raises:
            RunFilesError: naming the first one.
        """
        for step in self.steps:
            for key in keys:
                if key not in step:
                    raise RunFilesError(f"{self.folder}/steps.jsonl: step {step.get('step')} has no {key}")

    def requests(self) -> pa.Table:
        """requests.parquet; without the columns of drafts in a run that is older than they are.

        Raises:
            RunFilesError: if it is missing or empty, or lacks columns.
        """
        path = self.folder / "requests.parquet"
        if not path.is_file():
            raise RunFilesError(f"{self.folder} holds no requests.parquet: is it the output folder of a run?")
        try:
            table = pq.read_table(path)
        except pa.ArrowException as error:
            raise RunFilesError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
        there = [name for name in REQUESTS.names if name in table.column_names]
        missing = [name for name in REQUESTS.names if name not in {*there, *_DRAFTS}]
        if missing:
            raise RunFilesError(f"{path} has no column {', '.join(missing)}")
        if not table.num_rows:
            raise RunFilesError(f"{path} is empty: the run finished no step")
        return table.select(there).cast(pa.schema([REQUESTS.field(name) for name in there]))


def read_runs(folders: Sequence[str | Path]) -> list[Run]:
    """Several runs, each with a name of its own.

    Raises:
        RunFilesError: naming what is missing, or why two of them cannot be compared.
    """
    paths = [Path(folder) for folder in folders]
    runs = [Run(name, path, *_read(path)) for name, path in zip(_names(paths), paths, strict=True)]
    for run in runs[1:]:
        differ = difference(runs[0].summary, run.summary)
        if differ:
            raise RunFilesError(f"{runs[0].folder} and {run.folder} cannot be compared: {differ}")
    return runs


def difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """Why two runs cannot be compared, in words; None if they can, as far as both say."""
    for key in SHARED:
        one, other = _shared(ours, key), _shared(theirs, key)
        if one is not None and other is not None and one != other:
            return f"{key} is {one} in one, {other} in the other"
    return None


def relative(steps: Sequence[Step], baseline: Sequence[Step]) -> tuple[float, float, float] | None:
    """Generation time as a share of the baseline's.

    Returns:
        The median over the steps that both have, and its 95 % bootstrap interval; None if they share no step.
    """
    times = {step["step"]: step["gen_time_s"] for step in baseline}
    ratios = [step["gen_time_s"] / times[step["step"]] for step in steps if step["step"] in times]
    if not ratios:
        return None
    rng = random.Random(0)
    medians = sorted(median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return median(ratios), medians[50], medians[1949]


def _read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    for name in ("summary.json", "steps.jsonl"):
        if not (folder / name).is_file():
            raise RunFilesError(f"{folder} holds no {name}: is it the output folder of a run?")
    summary = _json(folder / "summary.json", (folder / "summary.json").read_text())
    steps = [_json(folder / "steps.jsonl", line) for line in (folder / "steps.jsonl").read_text().splitlines() if line]
    if not steps:
        raise RunFilesError(f"{folder}/steps.jsonl is empty: the run finished no step")
    for key in ("mode", "backend", "groups_per_step", "responses_per_group"):
        if key not in summary:
            raise RunFilesError(f"{folder}/summary.json has no {key}")
    return summary, steps


def _json(path: Path, text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise RunFilesError(f"{path} cannot be read: {error}") from None


def _shared(summary: Mapping[str, Any], key: str) -> Any:
    """Models are told apart by the end of their path: the same one may lie in different places."""
    value = summary.get(key)
    return os.path.basename(os.path.normpath(value)) if key == "model" and value else value


def _names(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ; a folder that is given twice is refused."""
    parts = [path.resolve().parts for path in paths]
    if len(set(parts)) < len(parts):
        twice = next(path for i, path in enumerate(paths) if parts[i] in parts[:i])
        raise RunFilesError(f"{twice} is given twice")
    length = 1
    while len({part[-length:] for part in parts}) < len(parts):
        length += 1
    return ["/".join(part[-length:]) for part in parts]
