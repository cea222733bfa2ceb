"""`tailsieve simulate`: run an experiment, write its results and figures."""

import json
import os
import sys
import time
from pathlib import Path

from tailsieve_rl.input_error import InputError
from tailsieve_rl.simulation.experiments import EXPERIMENTS, Options, experiment
from tailsieve_rl.simulation.figures import NoMatplotlibError


class SimulateError(InputError):
    """What was asked for cannot be done; one line for the user."""


def describe() -> str:
    """The experiments, one a line."""
    width = max(map(len, EXPERIMENTS))
    return "\n".join(f"{name:<{width}}  {experiment(name).description}" for name in EXPERIMENTS)


def simulate(name: str, out: Path, seed: int = 0, repeats: int | None = None) -> list[Path]:
    """Run an experiment and write `<out>/results.json` and its PNGs.

    Raises:
        SimulateError: if there is no such experiment, the folder cannot be written, or figures cannot be drawn.
    """
    if seed < 0:
        raise SimulateError(f"--seed {seed} must be 0 or more")
    if repeats is not None and repeats < 1:
        raise SimulateError(f"--repeats {repeats} must be 1 or more")
    try:
        chosen = experiment(name)
    except ValueError as error:
        raise SimulateError(str(error)) from None
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SimulateError(f"--out {out} cannot be written: {error.strerror}") from None
    if not os.access(out, os.W_OK):
        raise SimulateError(f"--out {out} cannot be written")
    started = time.monotonic()

    def progress(line: str) -> None:
        print(f"{name}: {line} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    results = {"experiment": name, "backend": "simulated", "seed": seed, **chosen.run(Options(seed, repeats, progress))}
    path = out / "results.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    try:
        return [path, *chosen.draw(results, out)]
    except NoMatplotlibError as error:
        raise SimulateError(f"{path} is written, but {error}") from None
