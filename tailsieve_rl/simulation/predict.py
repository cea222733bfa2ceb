"""`tailsieve predict`: what TailSieve would gain on a job's lengths, printed and written."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tailsieve_rl.input_error import InputError
from tailsieve_rl.routing.decode_model import DecodeModel, ProfileError, load_profile
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.length_table import TraceError
from tailsieve_rl.simulation.prediction import ENOUGH, MEASURED, Prediction, Source, predict
from tailsieve_rl.simulation.profiles import PROFILES, profile
from tailsieve_rl.simulation.rollout_dumps import read_measured

REPEATS = 20

ALIKE = 2.0
"""P99 / P50 of lengths below which a failure to gain is put down to it."""


class PredictError(InputError):
    """What was asked for cannot be done; one line for the user."""


def run(
    file: str,
    profile_name: str,
    replicas: int,
    groups: int | None = None,
    responses: int | None = None,
    seed: int = 0,
    repeats: int = REPEATS,
    tokenizer: str | None = None,
    out: str | None = None,
) -> None:
    """Print the prediction for a file of lengths and, with a folder, write it to `<out>/results.json`.

    Raises:
        PredictError: if an option or the file cannot be used, or the folder cannot be written.
    """
    for key, value, least in (
        ("--replicas", replicas, 1),
        ("--groups", groups, 1),
        ("--responses", responses, 2),
        ("--seed", seed, 0),
        ("--repeats", repeats, 2),
    ):
        if value is not None and value < least:
            raise PredictError(f"{key} {value} must be {least} or more")
    model = _model(profile_name)
    try:
        source = Source(read_measured(file, tokenizer))
    except TraceError as error:
        raise PredictError(str(error)) from None
    if source.prompts < 2:
        raise PredictError(f"{file} has one prompt at a checkpoint; it takes two or more to tell long ones from others")
    setup, origins = _setup(source, file, replicas, groups, responses)
    path = None if out is None else _results_file(out)
    found = predict(source, model, setup, range(seed, seed + repeats), _progress())
    print(report(source, profile_name, model, setup, origins, repeats, found))
    if path is None:
        return
    results = {
        "prediction": file,
        "backend": "simulated",
        "seed": seed,
        "repeats": repeats,
        "profile": {"name": profile_name, "model": model.model, "device": model.device, "kind": model.kind},
        "groups": setup.groups,
        "responses": setup.responses,
        "replicas": setup.replicas,
        "assumed_spread": source.spread,
        **asdict(found),
        "pays": found.pays,
        "verdict": verdict(source, setup, found),
    }
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(path)


def report(
    source: Source,
    profile_name: str,
    model: DecodeModel,
    setup: Setup,
    origins: tuple[str, str],
    repeats: int,
    found: Prediction,
) -> str:
    """The prediction in words and numbers, some fifteen lines."""
    p50, p90, p99 = np.percentile(source.table.tokens, [50, 90, 99])
    lines = [
        f"lengths   {len(source.table.tokens)} responses, {source.table.prompts} prompts; "
        f"P50 {p50:.0f}, P90 {p90:.0f}, P99 {p99:.0f} tokens",
        f"profile   {profile_name}: {model.model} on {model.device}, {model.kind}",
        f"step      N = {setup.groups} groups ({origins[0]}), n = {setup.responses} responses ({origins[1]}), "
        f"R = {setup.replicas} replicas",
        f"repeats   {repeats} of {MEASURED} steps, each with prompts drawn anew from the file",
    ]
    if source.spread:
        lines.append(
            f"warning   no prompt has a second response: a spread of {source.spread} (of the logarithm) is assumed"
        )
    over = (found.over_uniform, found.over_least_loaded)
    gains = [f"{gain.value:.3f}x ({gain.low:.3f}-{gain.high:.3f})" for gain in over]
    rows = [
        ("routing", "step, s", "TailSieve's speedup (95 %)"),
        ("uniform (whole groups)", f"{found.uniform_s:.1f}", gains[0]),
        ("least loaded (verl's rule)", f"{found.least_loaded_s:.1f}", gains[1]),
        ("TailSieve", f"{found.tailsieve_s:.1f}", "-"),
    ]
    table = [f"{name:<28}{step:>10}{gain:>30}" for name, step, gain in rows]
    tail = (
        f"TailSieve's tail pool: q = {found.q:.1f} of {setup.groups} groups, m = {found.m:.1f} of {setup.replicas} "
        f"replicas; wasted tokens {found.wasted:.1%}"
    )
    return "\n".join([*lines, "", table[0], "-" * len(table[0]), *table[1:], "", tail, verdict(source, setup, found)])


def verdict(source: Source, setup: Setup, found: Prediction) -> str:
    """One sentence: whether TailSieve would pay and, where that is evident, why not."""
    worse = min(found.over_uniform, found.over_least_loaded, key=lambda gain: gain.low)
    if found.pays:
        return f"It would pay: the lower end of both speedups, {worse.low:.3f}x or more, is above {ENOUGH}x."
    p50, p99 = np.percentile(source.table.tokens, [50, 99])
    if setup.replicas < 2:
        reason = "a single replica cannot be split"
    elif setup.groups < 2:
        reason = "a single group leaves nothing to isolate"
    elif worse.value > ENOUGH:
        reason = f"{worse.value:.3f}x is too uncertain, its lower end {worse.low:.3f}x is not above {ENOUGH}x"
    elif p99 / p50 < ALIKE:
        reason = f"lengths are too alike, P99 is {p99 / p50:.1f} x P50"
    elif found.over_uniform.low > ENOUGH:
        reason = "verl's own rule, which spreads single responses, is as fast"
    else:
        reason = "no split of the replicas is faster by enough"
    return f"It would not pay: {reason}."


def _model(name: str) -> DecodeModel:
    if name in PROFILES:
        return profile(name)
    if not Path(name).is_file():
        raise PredictError(f"--profile {name} must be one of {', '.join(PROFILES)}, or the file of a decode profile")
    try:
        model = load_profile(name)
    except ProfileError as error:
        raise PredictError(f"--profile: {error}") from None
    if 0 not in model.depths:
        raise PredictError(f"--profile {name} must have points of draft_depth 0, not only of {model.depths}")
    return model


def _setup(
    source: Source, file: str, replicas: int, groups: int | None, responses: int | None
) -> tuple[Setup, tuple[str, str]]:
    """N, n and R, and where the first two come from, in words."""
    where_groups, where_responses = "--groups", "--responses"
    if groups is None:
        if source.table.groups is None:
            raise PredictError(f"--groups is missing: {file} does not say how many prompts a step has")
        groups, where_groups = source.table.groups, "as in most steps of the file"
    if responses is None and source.responses > 1:
        responses, where_responses = source.responses, "as most prompts of the file have"
    elif responses is None:
        responses, where_responses = RESPONSES, "as in the paper: the file has one"
    return Setup(groups, responses, replicas), (where_groups, where_responses)


def _results_file(out: str) -> Path:
    path = Path(out) / "results.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise PredictError(f"--out {out} cannot be written: {error.strerror}") from None
    return path


def _progress() -> Callable[[str], None]:
    """A line that the next one, or the report, overwrites; nothing where nobody watches."""
    if not sys.stderr.isatty():
        return lambda line: None
    return lambda line: print(f"{line}\r", end="", file=sys.stderr, flush=True)
