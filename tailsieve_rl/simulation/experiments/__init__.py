"""The paper's offline results in virtual time: `tailsieve simulate NAME` (one experiment a module).

A module has `DESCRIPTION` (one line), `run(options) -> results` (JSON), and `draw(results, out) -> paths of PNGs`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """What every experiment is told.

    Attributes:
        seed: of the first repeat; repeat k has seed + k.
        repeats: prompt streams that everything is compared on; None: as many as the experiment's claim needs.
        progress: takes a line for the user.
    """

    seed: int = 0
    repeats: int | None = None
    progress: Callable[[str], None] = lambda line: None

    def seeds(self, default: int) -> range:
        """Seeds of the repeats."""
        return range(self.seed, self.seed + (self.repeats or default))


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment by name."""

    name: str
    description: str
    run: Callable[[Options], Results]
    draw: Callable[[Results, Path], list[Path]]


_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "throughput": "throughput",
        "oracle": "oracle",
        "capture": "capture",
        "landscape": "landscape",
        "policies": "policies",
        "concurrency": "concurrency",
        "convergence": "convergence",
        "optimality-gap": "optimality_gap",
        "regimes": "regimes",
        "bias": "bias",
        "training": "training",
        "speculation": "speculation",
        "depth-budget": "depth_budget",
        "governed-depth": "governed_depth",
        "ablation": "ablation",
        "scale": "scale",
    }
)
EXPERIMENTS = tuple(_MODULES)


def experiment(name: str) -> Experiment:
    """Load an experiment.

    Raises:
        ValueError: if there is none of that name.
    """
    if name not in _MODULES:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    module = import_module(f"{__name__}.{_MODULES[name]}")
    return Experiment(name, module.DESCRIPTION, module.run, module.draw)
