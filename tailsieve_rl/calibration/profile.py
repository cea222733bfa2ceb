"""The decode profile of a measurement, with everything that is needed to repeat it."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailsieve_rl import __version__, versions
from tailsieve_rl.calibration.measure import WARM_UP_TOKENS, Measured
from tailsieve_rl.calibration.settings import Settings
from tailsieve_rl.platforms.environment import VARIABLES
from tailsieve_rl.routing.decode_model import MEASURED, DecodeModel, DecodePoint, isotonic
from tailsieve_rl.routing.draft import acceptance


@dataclass(frozen=True, slots=True)
class Source:
    """What was measured: model, engine and device, and the arguments for each draft depth if the engine was ours."""

    model: str
    engine: str
    device: str
    arguments: Mapping[int, Sequence[str]]


def of(settings: Settings, source: Source, points: Sequence[Measured], command: str) -> DecodeModel:
    """The profile. tau is made non-decreasing in b (isotonic regression of the medians), as the online estimate is."""
    curves = [
        point
        for depth in settings.draft_depths
        for point in _smooth([point for point in points if point.draft_depth == depth])
    ]
    notes = {**_acceptance(points), **_notes(settings, source, points, command)}
    return DecodeModel(tuple(curves), source.model, source.device, source.engine, MEASURED, notes)


def device(on_cpu: bool) -> str:
    """The device of an engine that we start, in words."""
    if on_cpu:
        return f"CPU: {_cpu_name()}, {len(os.sched_getaffinity(0))} cores"
    try:
        ask = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        names = subprocess.run(ask, capture_output=True, text=True, timeout=30).stdout.split("\n")
    except (OSError, subprocess.TimeoutExpired):
        names = []
    return names[0].strip() if names and names[0].strip() else "unknown accelerator"


def _smooth(points: Sequence[Measured]) -> Iterable[DecodePoint]:
    ordered = sorted(points, key=lambda point: point.b)
    taus = isotonic([point.median_s for point in ordered], [1.0] * len(ordered))
    return [DecodePoint(point.b, float(tau), point.draft_depth) for point, tau in zip(ordered, taus, strict=True)]


def _acceptance(points: Sequence[Measured]) -> dict[str, Any]:
    """The note that DecodeModel.acceptance reads: shares of verifications with 1, 2, ... accepted drafts or more."""
    accepted = acceptance(point.verifications for point in points)
    return {"acceptance": [round(share, 4) for share in accepted.at_least]} if accepted else {}


def _notes(settings: Settings, source: Source, points: Sequence[Measured], command: str) -> dict[str, Any]:
    return {
        "how": "tailsieve calibrate: b requests decode together; tau is the engine's time from first to last token, "
        "over the tokens after the first. points: medians of the repeats, made non-decreasing in b (isotonic)",
        "command": command,
        "versions": {"tailsieve-rl": __version__, **{name: versions.installed(name) for name in versions.KNOWN}},
        "url": settings.url,
        "engine_arguments": {str(depth): list(given) for depth, given in source.arguments.items()},
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ} if not settings.url else {},
        "sampling": "temperature 1, no top-k, no top-p, log-probability of the sampled token, no seed, ignore_eos",
        "prompts": f"{len(settings.prompts)} given" if settings.prompts else f"random, {settings.prompt_tokens} tokens",
        "tokens": settings.tokens,
        "warm_up_tokens": min(WARM_UP_TOKENS, settings.tokens),
        "repeats": settings.repeats,
        "batch_sizes": list(settings.batch_sizes),
        "speculative": settings.speculative,
        "measured": [
            {
                "b": point.b,
                "draft_depth": point.draft_depth,
                "median_s": point.median_s,
                "samples_s": list(point.samples_s),
                "tokens_a_step": round(point.tokens_a_step, 2),
                "verifications": list(point.verifications),
            }
            for point in points
        ],
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()
