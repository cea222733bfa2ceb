"""`tailsieve calibrate`, from checked settings to the profile on disk."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from tailsieve_rl import versions
from tailsieve_rl.calibration import profile, started
from tailsieve_rl.calibration.client import Client, EngineError, Served
from tailsieve_rl.calibration.measure import Measured, curve
from tailsieve_rl.calibration.settings import CalibrateError, Settings, prompts_of, speculative_of, whole_numbers
from tailsieve_rl.routing.decode_model import DecodeModel, save_profile


def calibrate(settings: Settings, command: str) -> DecodeModel:
    """Measure, and write the profile to `settings.out`; `command` is kept in it.

    Raises:
        CalibrateError: for bad input, before anything is measured.
        EngineError: if the engine fails, or does not decode b requests together.
    """
    settings.check()
    points, source = asyncio.run(_running(settings) if settings.url else _started(settings))
    model = profile.of(settings, source, points, command)
    save_profile(model, settings.out)
    return model


def settings_of(options: argparse.Namespace) -> Settings:
    """Of the command line."""
    return Settings(
        model=options.model,
        out=Path(options.out),
        url=options.url,
        batch_sizes=whole_numbers("--batch-sizes", options.batch_sizes),
        tokens=options.tokens,
        repeats=options.repeats,
        prompt_tokens=options.prompt_tokens,
        prompts=prompts_of(options.prompts),
        draft_depths=whole_numbers("--draft-depths", options.draft_depths),
        speculative=speculative_of(options.speculative),
        engine_arguments=tuple(options.engine_arguments),
    )


async def _started(settings: Settings) -> tuple[list[Measured], profile.Source]:
    on_cpu = started.prepare()
    arguments = {depth: started.arguments(settings, depth, on_cpu) for depth in settings.draft_depths}
    points = []
    for depth, serve in arguments.items():
        tell("starting an engine" + (f" with draft depth {depth}" if depth else ""))
        begin = time.monotonic()
        async with started.engine(serve) as client:
            tell(f"the engine is ready after {time.monotonic() - begin:.0f} s")
            points += await curve(client, settings.model, settings, depth, tell)
    engine = f"vllm {versions.installed('vllm')}"
    return points, profile.Source(settings.model, engine, profile.device(on_cpu), arguments)


async def _running(settings: Settings) -> tuple[list[Measured], profile.Source]:
    assert settings.url is not None
    async with Client(settings.url) as client:
        try:
            models = await client.served()
            version = await client.version()
        except EngineError as error:
            raise CalibrateError(f"--url: {error}") from None
        served = _choose(models, settings)
        settings.check_length(served.longest, f"the engine at {settings.url}")
        points = await curve(client, served.name, settings, settings.draft_depths[0], tell)
    return points, profile.Source(served.name, f"vllm {version}", f"that of {settings.url}", {})


def _choose(models: list[Served], settings: Settings) -> Served:
    """The model asked for, or, with a warning, the one that is served."""
    if not models:
        raise CalibrateError(f"--url {settings.url} serves no model")
    wanted = {settings.model, str(Path(settings.model).resolve())}
    for served in models:
        if wanted & {served.name, served.root}:
            return served
    tell(f"warning: {settings.url} serves {models[0].name}, not {settings.model}; the profile is of what it serves")
    return models[0]


def tell(line: str) -> None:
    """A line for the user, beside the results."""
    print(f"calibrate: {line}", file=sys.stderr, flush=True)
