"""Recipes as plain values, for tests that look at them."""

from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.plugins import Plugins
from omegaconf import DictConfig, OmegaConf

from tailsieve_rl import hydra_app

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"


@cache
def config_of(name: str, *overrides: str) -> DictConfig:
    """A recipe as the trainer gets it. Whoever changes it changes it for all: copy it first."""
    Plugins.instance().register(hydra_app.RecipeSearchPath)
    with initialize_config_dir(str(hydra_app.verl_configs()), version_base=None):
        return compose(name, overrides=list(overrides))


@cache
def composed(name: str, *overrides: str) -> dict[str, Any]:
    """A recipe as plain values, interpolations resolved."""
    values: Any = OmegaConf.to_container(config_of(name, *overrides), resolve=True)
    return values


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """Every value by its dotted key."""
    if isinstance(tree, dict) and tree:
        return {k: v for key, value in tree.items() for k, v in leaves(value, f"{path}.{key}".strip(".")).items()}
    return {path: tree}


def names(benchmarks: bool = False) -> list[str]:
    """The recipes of the repository: whatever in its folders is neither a part (`_`) nor in a folder of overlays."""
    files = {f.relative_to(RECIPES).with_suffix("") for f in RECIPES.rglob("*.yaml") if f.name[0] != "_"}
    found = [f for f in files if not {"model", "speculation", "try", "workload"} & set(f.parts[:-1])]
    return sorted(str(f) for f in found if (f.parts[0] == "bench") == benchmarks)
