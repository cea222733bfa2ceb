"""`tailsieve evaluate`: accuracies of models, answered through the two pools, in the form of the paper's Table 3."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from tailsieve_rl import versions
from tailsieve_rl.config.settings import read_settings
from tailsieve_rl.data.command import prepare
from tailsieve_rl.data.lengths import load_tokenizer
from tailsieve_rl.evaluation import job, results, score, table
from tailsieve_rl.evaluation.benchmarks import SPLIT, samples_of
from tailsieve_rl.evaluation.model import Model, find_model, merged
from tailsieve_rl.evaluation.prompts import ProblemSet, longest_prompt, read_sets, write_prompts
from tailsieve_rl.hydra_app import run_job
from tailsieve_rl.input_error import InputError


@dataclass(frozen=True, slots=True)
class Options:
    """The command line.

    Attributes:
        models: models to evaluate, or earlier results to set beside them.
        base: the base model, or its results.
        sets: which benchmarks.
        samples: responses a problem; None: k.
        data: folder of the sets' files; None: they are fetched from the hub.
        out: each model has a folder in it.
        sampling: of the responses.
        overrides: of verl's configuration.
        command_line: as typed.
    """

    models: Sequence[str]
    base: str | None
    sets: Sequence[str]
    samples: int | None
    data: Path | None
    out: Path
    sampling: job.Sampling
    overrides: Sequence[str]
    command_line: str


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A model that can be evaluated: all that was given is checked."""

    model: Model
    folder: Path
    sets: Mapping[str, ProblemSet]
    config: DictConfig


def evaluate(options: Options) -> None:
    """Check everything, evaluate what has no results yet, print the table and write it as table.md.

    Raises:
        InputError: for whatever cannot work, before any model is loaded.
    """
    samples = samples_of(options.sets, options.samples)
    given = [*options.models, *([] if options.base is None else [options.base])]
    read = {text: results.read(Path(text)) for text in given}
    measured = {text: found for text, found in read.items() if found is not None}
    models = {text: find_model(text) for text in given if text not in measured}
    _check_names([measured[text]["model"]["name"] if text in measured else models[text].name for text in given])
    sets = _problems(options, samples) if models else {}
    ready = {text: _prepared(model, options, sets) for text, model in models.items()}
    protocols = [*map(_protocol, ready.values()), *(found["protocol"] for found in measured.values())]
    results.check_comparable(protocols[0], {text: found["protocol"] for text, found in measured.items()})
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {options.out}: cannot be written: {error.strerror}") from None
    for text, found in ready.items():
        measured[text] = _evaluated(found, options)
    _show(options, [measured[text] for text in options.models], measured.get(options.base or ""), protocols[0]["sets"])


def _show(
    options: Options, models: Sequence[results.Results], base: results.Results | None, sets: Mapping[str, Any]
) -> None:
    """Print the table and how it was measured, and write both."""
    text = table.table(models, base, list(sets))
    below = [] if base is None else table.notes(base)
    below += [line for model in models for line in table.notes(model, base)]
    path = options.out / "table.md"
    path.write_text("\n".join([text, "", *(f"    {line}" for line in below)]) + "\n")
    print(text, *below, path, sep="\n")


def _problems(options: Options, samples: Mapping[str, int]) -> dict[str, ProblemSet]:
    """Of the folder that was given, or fetched from the hub."""
    if options.data is not None:
        return read_sets(options.data, samples)
    folder = options.out / "data"
    with contextlib.redirect_stdout(sys.stderr):
        for name in samples:
            prepare(name, folder, split=SPLIT)
    return read_sets(folder, samples)


def _check_names(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"{', '.join(twice)}: two models of that name cannot stand in one table or folder")


def _prepared(model: Model, options: Options, sets: Mapping[str, ProblemSet]) -> _Prepared:
    from tailsieve_rl.rollout.checks import check_config

    folder = options.out / model.name
    longest = longest_prompt(sets, load_tokenizer(model.path))
    config = job.job_config(model.path, sets, longest, options.sampling, folder, options.overrides)
    check_config(config)
    return _Prepared(model, folder, sets, config)


def _protocol(ready: _Prepared) -> dict[str, Any]:
    return results.protocol(ready.sets, job.sampling_of(ready.config))


def _evaluated(ready: _Prepared, options: Options) -> results.Results:
    """Answer, judge, and write the results; exits with one line if the job fails."""
    from tailsieve_rl.rollout.checks import setup_of

    started = time.monotonic()
    run_job(partial(_answer, ready, options.sampling.requests), ready.config)
    answered = time.monotonic()
    rollouts = ready.folder / job.ROLLOUTS
    print(f"evaluate: {ready.model.name}: judging", file=sys.stderr, flush=True)
    rows = score.judge(ready.sets, rollouts)
    score.write(rows, ready.folder / "responses.parquet")
    streams = results.round_results(ready.sets, rollouts)
    lines = [line for stream in streams.values() for line in stream]
    found: results.Results = {
        "model": {"name": ready.model.name, "given": ready.model.given},
        "protocol": _protocol(ready),
        "seed": options.sampling.seed,
        "estimator": results.ESTIMATOR,
        "interval": results.INTERVAL,
        "sets": results.set_results(ready.sets, rows, rollouts),
        "rollouts": {
            "policy": read_settings(ready.config.trainer.v1.tailsieve).policy,
            "replicas": setup_of(ready.config).replicas,
            "requests": options.sampling.requests,
            "tokens": sum(line["aborted_tokens"] for line in lines) + sum(row["response_tokens"] for row in rows),
            "streams": streams,
        },
        "time_s": {
            "generation": sum(line["gen_time_s"] for line in lines),
            "job": answered - started,
            "judging": time.monotonic() - answered,
            "total": time.monotonic() - started,
        },
        "command": options.command_line,
        "versions": {name: versions.installed(name) for name in versions.KNOWN},
    }
    results.write(found, ready.folder)
    return found


def _answer(ready: _Prepared, requests: int, config: DictConfig) -> None:
    """Run the job; earlier results of the model go, as they would no longer fit what lies beside them."""
    (ready.folder / results.FILE).unlink(missing_ok=True)
    write_prompts(ready.sets, ready.folder / job.PROMPTS)
    config.actor_rollout_ref.model.path = merged(ready.model, ready.folder)
    job.run(config, ready.sets, requests, ready.folder)
