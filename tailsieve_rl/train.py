"""`tailsieve train`, also `python -m tailsieve_rl.train`: verl's PPO trainer as a Hydra application that knows recipes.

The configuration is verl's own, and so is what happens with it: after our checks, `verl.trainer.main_ppo` runs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

HELP = """\
usage: tailsieve train [--config-name RECIPE] [KEY=VALUE ...]

Train with verl. Without a recipe the configuration is verl's ppo_trainer; every key of verl's can be set.

  --config-name RECIPE  start from recipes/RECIPE.yaml, here or in the repository: {recipes}
  KEY=VALUE             set a key of the configuration; ++KEY=VALUE where the recipe does not have it yet
  --cfg job             print the configuration and stop
  --hydra-help          all other options

example: tailsieve train --config-name cpu/countdown trainer.total_training_steps=3"""


def main(argv: Sequence[str] | None = None) -> int:
    """Compose the configuration, train, and return the exit code: 2 for bad input, 1 for a failed run."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if {"-h", "--help"} & set(arguments):
        print(HELP.format(recipes=", ".join(recipe_names()) or "none found"))
        return 0
    composed = False

    def job(config: DictConfig) -> None:
        nonlocal composed
        composed = True
        _train(config)

    sys.argv = ["tailsieve train", *arguments]  # where Hydra looks
    try:
        _application(job)()
    except SystemExit as stop:  # Hydra has printed what is wrong
        if not stop.code or stop.code == 2:
            return int(stop.code or 0)
        print("tailsieve: error: this is not a valid configuration, for the reason above", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tailsieve: error: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _report(error)
    return 0


def recipe_folders() -> list[Path]:
    """Where recipes are looked up: the current folder's, then those of the repository that this package lies in."""
    candidates = (Path.cwd() / "recipes", Path(__file__).resolve().parents[1] / "recipes")
    return [folder for folder in dict.fromkeys(candidates) if folder.is_dir()]


def recipe_names() -> list[str]:
    """Every recipe by the name that `--config-name` takes."""
    return sorted(set(_names()))


def _names() -> Iterator[str]:
    for folder in recipe_folders():
        for file in folder.rglob("*.yaml"):
            if not file.name.startswith("_"):  # shared by recipes, no recipe itself
                yield file.relative_to(folder).with_suffix("").as_posix()
