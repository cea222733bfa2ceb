"""What commands that run verl's jobs share: Hydra's configuration of verl with recipes, and what becomes of errors.

What is wrong with a configuration becomes one line and exit code 2, a failed run its last cause and exit code 1.
"""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import hydra
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from tailsieve_rl.input_error import InputError

FULL_ERROR = "HYDRA_FULL_ERROR"
HELP_INDENT = 24 * " "
BENCHMARKS = "bench/"
OVERLAYS = frozenset({"model", "speculation", "try", "workload"})
"""Folders of what is added to a recipe, `+try=cpu`, or chosen in it, `model=qwen3.5-2b`."""

QUIET_ON_CPU = {
    # verl lists the training engines that are not installed, in every process
    "PYTHONWARNINGS": "ignore::UserWarning:verl.workers.engine",
    # these warn of GPU kernels and allocators that a CPU does not have, in every process
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TRANSFORMERS_VERBOSITY": "error",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # TransferQueue wants 8 threads, and warns in every call where there are fewer cores
    "TQ_NUM_THREADS": "1",
}


class RecipeSearchPath(SearchPathPlugin):
    """Makes recipes, and configurations of ours, known to Hydra, ahead of verl's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        verl = SearchPathQuery(provider="main")
        for folder in recipe_folders():
            search_path.prepend("recipes", f"file://{folder}", verl)
        search_path.prepend("tailsieve", "pkg://tailsieve_rl.config", verl)


def recipe_folders() -> list[Path]:
    """The recipes of the current folder, and those of the repository that this package lies in."""
    folders = (Path.cwd() / "recipes", Path(__file__).resolve().parents[1] / "recipes")
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def recipe_names(benchmarks: bool = False) -> list[str]:
    """The recipes as `--config-name` takes them: of training, or of benchmarks.

    A name that starts with "_" is a part of recipes, not one, and neither is what lies in a folder of OVERLAYS.
    """
    found = {
        file.relative_to(folder).with_suffix("") for folder in recipe_folders() for file in folder.rglob("[!_]*.yaml")
    }
    names = sorted(path.as_posix() for path in found if not OVERLAYS.intersection(path.parts[:-1]))
    return [name for name in names if name.startswith(BENCHMARKS) == benchmarks]


def verl_configs() -> Path:
    """The folder of verl's ppo_trainer.yaml, found without importing verl, which takes seconds."""
    spec = find_spec("verl")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("verl is not installed")
    return Path(spec.origin).parent / "trainer" / "config"


def run_app(
    command: str,
    arguments: Sequence[str],
    usage: str,
    job: Callable[[DictConfig], None],
    benchmarks: bool = False,
) -> int:
    """Run a Hydra application, and return the exit code: 2 for bad input, 1 for a failed run.

    Args:
        command: what the user typed, "tailsieve train".
        arguments: what came after it.
        usage: printed for --help; "{recipes}" in it becomes the names of the recipes.
        job: gets the configuration.
        benchmarks: whether those recipes are of benchmarks.
    """
    if {"-h", "--help"} & set(arguments):
        names = ", ".join(recipe_names(benchmarks)) or "none found"
        print(usage.format(recipes=textwrap.fill(names, 96, subsequent_indent=HELP_INDENT, break_on_hyphens=False)))
        return 0
    sys.argv = [command, *arguments]  # where Hydra looks
    wants_traceback = FULL_ERROR in os.environ
    os.environ[FULL_ERROR] = "1"  # Hydra then raises what is wrong with the configuration, which we print in one line
    try:
        Plugins.instance().register(RecipeSearchPath)
        decorate = hydra.main(version_base=None, config_path=str(verl_configs()), config_name="ppo_trainer")
        decorate(lambda config: run_job(job, config))()
    except SystemExit as stop:
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except Exception as error:
        if wants_traceback:
            traceback.print_exception(error)
        return _fail(_one_line(error), 2)
    return 0


def compose(name: str, overrides: Sequence[str]) -> DictConfig:
    """A configuration of verl's, or a recipe, with overrides, for a command that is no Hydra application.

    Raises:
        InputError: if there is no such configuration, or an override cannot be applied, in one line.
    """
    Plugins.instance().register(RecipeSearchPath)
    try:
        with hydra.initialize_config_dir(str(verl_configs()), version_base=None):
            return hydra.compose(name, list(overrides))
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(_one_line(error)) from None


def activate_plugin() -> None:
    """Register what extends verl, ahead of every module of verl that it extends."""
    importlib.import_module("tailsieve_rl.plugin")
    if os.environ.get("VERL_PLATFORM") == "cpu":  # the plug-in has set it, where the user has not
        for name, value in QUIET_ON_CPU.items():
            os.environ.setdefault(name, value)


def run_job(job: Callable[[DictConfig], None], config: DictConfig) -> None:
    """Run a job; if it fails, say why in one line and exit: 2 for bad settings, 1 for a failed run."""
    try:
        job(config)
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, InputError):
            sys.exit(_fail(_one_line(cause), 2))
        traceback.print_exception(error)
        sys.exit(_fail(_one_line(cause), 1))


def _cause(error: BaseException) -> BaseException:
    """What a Ray task or actor raised, out of Ray's wrappers."""
    ray = sys.modules.get("ray")
    while ray is not None and isinstance(error, ray.exceptions.RayTaskError):
        error = error.cause
    return error


def _one_line(error: BaseException) -> str:
    """The first paragraph of the message; of a failed actor's, which ends with a traceback, the last line."""
    text = str(error).strip()
    if getattr(error, "actor_init_failed", False):
        return text.splitlines()[-1]
    line = " ".join(text.split("\n\n")[0].split())
    if line and (isinstance(error, InputError) or type(error).__module__.startswith("hydra.")):
        return line
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _fail(message: str, code: int) -> int:
    if ray := sys.modules.get("ray"):
        ray.shutdown()  # or what its workers still print would come after our line
    print(f"tailsieve: error: {message}", file=sys.stderr)
    return code
