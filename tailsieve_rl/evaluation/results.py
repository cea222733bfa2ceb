"""results.json of a model: accuracies, how they were measured, and whether another one can be set beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tailsieve_rl.config.evaluation import stream
from tailsieve_rl.evaluation.benchmarks import BENCHMARKS
from tailsieve_rl.evaluation.pass_at_k import pass_at_k, wilson
from tailsieve_rl.evaluation.prompts import ProblemSet
from tailsieve_rl.evaluation.score import Judged
from tailsieve_rl.input_error import InputError

FILE = "results.json"
Results = dict[str, Any]

ESTIMATOR = "1 - C(n - c, k) / C(n, k), mean over problems (Chen et al. 2021)"
INTERVAL = "95 %, Wilson's score interval over problems"


def protocol(sets: Mapping[str, ProblemSet], sampling: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal where two models are compared."""
    problems = {name: {"k": BENCHMARKS[name].k, "prompts": found.digest} for name, found in sets.items()}
    return {"sets": problems, "sampling": dict(sampling)}


def set_results(sets: Mapping[str, ProblemSet], rows: Judged, rollouts: Path) -> dict[str, Any]:
    """Accuracy, lengths and truncation of each set; tokens, and shares of responses or problems."""
    regenerated = _regenerated(sets, rollouts)
    results, first = {}, 0
    for name, problems in sets.items():
        n, k, of_set = problems.samples, BENCHMARKS[name].k, [row for row in rows if row["set"] == name]
        correct = [0] * len(problems.rows)
        for row in of_set:
            correct[row["problem"]] += row["correct"]
        values = [pass_at_k(n, c, k) for c in correct]
        lengths = [row["response_tokens"] for row in of_set]
        p50, p90 = np.percentile(lengths, [50, 90])
        indices = range(first, first + len(problems.rows))
        first += len(problems.rows)
        results[name] = {
            "problems": len(problems.rows),
            "n": n,
            "k": k,
            "accuracy": fmean(values),
            "accuracy_ci95": wilson(values),
            "pass_at_1": fmean(c / n for c in correct),
            "correct": correct,
            "response_tokens": {"mean": fmean(lengths), "p50": p50, "p90": p90, "max": max(lengths)},
            "truncated_share": fmean(row["truncated"] for row in of_set),
            "regenerated_share": fmean(index in regenerated for index in indices),
            "made": dict(problems.made),
        }
    return results


def round_results(sets: Mapping[str, ProblemSet], rollouts: Path) -> dict[str, Any]:
    """How each stream was routed, round by round."""
    keys = ("step", "q", "m", "q_next", "consumed_groups", "gen_time_s", "aborted_tokens", "wasted_fraction")
    streams = {}
    for samples in dict.fromkeys(found.samples for found in sets.values()):
        lines = (rollouts / stream(samples) / "steps.jsonl").read_text().splitlines()
        streams[stream(samples)] = [{key: json.loads(line)[key] for key in keys} for line in lines]
    return streams


def _regenerated(sets: Mapping[str, ProblemSet], rollouts: Path) -> set[int]:
    """Rows of the prompts whose responses were generated anew, on the tail replicas."""
    found: set[int] = set()
    for samples in {problems.samples for problems in sets.values()}:
        columns = pq.read_table(rollouts / stream(samples) / "requests.parquet", columns=["prompt_index", "attempt"])
        found |= {row["prompt_index"] for row in columns.to_pylist() if row["attempt"] > 1}
    return found


def write(results: Results, folder: Path) -> None:
    """Write the file, whole or not at all."""
    partial = folder / f"{FILE}.partial"
    partial.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(partial, folder / FILE)


def read(path: Path) -> Results | None:
    """The results that a path names: the file, or a folder that has it. None: it names something else.

    Raises:
        InputError: if it is a file of something else.
    """
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        return None
    try:
        results: Results = json.loads(path.read_text())
        sets = results["protocol"]["sets"]
        complete = all({"accuracy", "correct", "n", "k"} <= results["sets"][name].keys() for name in sets)
        complete = complete and {"model", "rollouts", "time_s"} <= results.keys()
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        complete = False
    if not complete:
        raise InputError(f"{path}: is no result of tailsieve evaluate")
    return results


def check_comparable(found: Mapping[str, Any], protocols: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse to set models side by side that were not measured alike.

    Args:
        found: the protocol of this run, or of the first model.
        protocols: of the others, by what messages call them.

    Raises:
        InputError: naming the first difference.
    """
    for name, other in protocols.items():
        missing = [key for key in found["sets"] if key not in other["sets"]]
        if missing:
            raise InputError(f"{name}: has no results for {', '.join(missing)}")
        for key, problems in found["sets"].items():
            if other["sets"][key] != problems:
                raise InputError(f"{name}: was measured on other problems of {key}, or with another template")
        _check_sampling(name, found["sampling"], other["sampling"])


def _check_sampling(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    different: Sequence[str] = [key for key in here if here[key] != there.get(key)]
    if different:
        key = different[0]
        raise InputError(f"{name}: was measured with {key} {there.get(key)!r}, not {here[key]!r}")
