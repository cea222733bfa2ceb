"""Fig. 6a: a budget of drafts, d_bulk + d_tail = 2 d_base, spent evenly under uniform routing or by route."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.fixed_depths import Depths, depth_times, uniform_times
from tailsieve_rl.simulation.experiments.static import static_grid
from tailsieve_rl.simulation.experiments.statistics import speedup
from tailsieve_rl.simulation.experiments.tables import FACTORIES, MEASURED
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import replicas
from tailsieve_rl.simulation.profiles.drafters import Method
from tailsieve_rl.simulation.profiles.speculation import ACCEPTANCE, profile_with_drafts

DESCRIPTION = "Fig. 6a: drafts shared between the pools, d_bulk + d_tail = 2 d_base, against uniform routing at d_base"

GROUPS, REPEATS = 64, 20
MODELS = ("qwen3.5-35b-a3b-tp2", "qwen3.5-4b")
"""The paper's, and a dense one."""
METHODS: tuple[Method, ...] = ("mtp", "dflash")
BASES = (1, 2, 3, 4, 5)

Floats = NDArray[np.float64]
Point = tuple[Allocation, Depths]


def run(
    options: Options,
    models: Sequence[str] = MODELS,
    bases: Sequence[int] = BASES,
    methods: Sequence[Method] = METHODS,
    workloads: Sequence[str] = tuple(FACTORIES),
) -> Results:
    cells = []
    for model in models:
        for workload in workloads:
            for method in methods:
                cells.append(_cell(model, workload, method, bases, options.seeds(REPEATS)))
                best = [(b["base"], b["routed"]["depths"]) for b in cells[-1]["budgets"]]
                options.progress(f"{model} {workload} {method}: base depth and best (tail, bulk): {best}")
    return {"groups": GROUPS, "responses": RESPONSES, "acceptance": ACCEPTANCE, "cells": cells}


def _cell(name: str, workload: str, method: Method, bases: Sequence[int], seeds: range) -> dict[str, Any]:
    """Every split of every budget at every static allocation, (0, 0) among them, which has no split.

    The best allocation is chosen in hindsight for each split, as a controller would adapt to it.
    """
    setup = Setup(GROUPS, RESPONSES, replicas(name))
    model = profile_with_drafts(name, method, range(1, 2 * max(bases) + 1))
    streams = [FACTORIES[workload](seed, RESPONSES, evolving=False) for seed in seeds]
    pairs = sorted({Depths(0, 0), *(pair for base in bases for pair in _splits(base))})
    allocations = static_grid(setup)
    found: dict[Point, list[float]] = {}
    for stream in streams:
        for point, times in depth_times(allocations, pairs, setup, stream, model, MEASURED).items():
            found.setdefault(point, []).append(float(times.mean()))
    uniform = {d: [float(uniform_times(setup, s, model, d, MEASURED).mean()) for s in streams] for d in (0, *bases)}
    plain = uniform[0]
    return {
        "model": name,
        "workload": workload,
        "method": method,
        "replicas": setup.replicas,
        "uniform_s": float(np.mean(plain)),
        "routing": _best(found, [Depths(0, 0)], allocations, plain),
        "budgets": [_budget(base, found, allocations, uniform) for base in bases],
    }


def _splits(base: int) -> list[Depths]:
    return [Depths(tail, 2 * base - tail) for tail in range(2 * base + 1)]


def _budget(
    base: int, found: Mapping[Point, list[float]], allocations: Sequence[Allocation], uniform: Mapping[int, list[float]]
) -> dict[str, Any]:
    """A budget: spent under uniform routing, evenly by TailSieve, and at each split; speedups over no drafts at all."""
    plain = uniform[0]
    gain = speedup(plain, uniform[base])
    even = _best(found, [Depths(base, base)], allocations, plain)
    split_pools = [at for at in allocations if not at.is_uniform]
    splits = [_best(found, [pair], split_pools, plain) for pair in _splits(base)]
    routed = _best(found, _splits(base), allocations, plain)
    return {
        "base": base,
        "uniform": {"speedup": gain.value, "ci95": gain.interval},
        "even": even,
        "routed": routed,
        "routed_over_even": _ratio(even["step_s_by_stream"], routed["step_s_by_stream"]),
        "routed_over_uniform": _ratio(uniform[base], routed["step_s_by_stream"]),
        "splits": splits,
    }


def _ratio(baseline_s: Sequence[float], routed_s: Sequence[float]) -> dict[str, Any]:
    gain = speedup(baseline_s, routed_s)
    return {"speedup": gain.value, "ci95": gain.interval}


def _best(
    found: Mapping[Point, list[float]], pairs: Sequence[Depths], allocations: Sequence[Allocation], plain: list[float]
) -> dict[str, Any]:
    """The fastest of these pairs at its best allocation, by the mean over the prompt streams."""
    points = [(at, pair) for at in allocations for pair in pairs if (at, pair) in found]
    at, pair = min(points, key=lambda point: float(np.mean(found[point])))
    gain = speedup(plain, found[at, pair])
    return {
        "q": at.q,
        "m": at.m,
        "depths": list(pair),
        "speedup": gain.value,
        "ci95": gain.interval,
        "step_s_by_stream": found[at, pair],
    }


_LOOK = MappingProxyType(
    {
        "uniform": ("uniform groups, (d, d)", COLOURS["uniform"]),
        "even": ("TailSieve, (d, d)", COLOURS["bulk"]),
        "routed": ("TailSieve, best split", COLOURS["tailsieve"]),
    }
)


def draw(results: Results, out: Path) -> list[Path]:
    path, cells = out / "depth-budget.png", results["cells"]
    rows = list(dict.fromkeys((cell["model"], cell["workload"]) for cell in cells))
    columns = list(dict.fromkeys(cell["method"] for cell in cells))
    with figure(path, rows=len(rows), columns=2 * len(columns), size=(3.5, 2.5)) as axes:
        for cell in cells:
            row = rows.index((cell["model"], cell["workload"]))
            column = 2 * columns.index(cell["method"])
            _draw(axes[row, column], axes[row, column + 1], cell)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return [path]


def _draw(left: Any, right: Any, cell: Mapping[str, Any]) -> None:
    bases = [budget["base"] for budget in cell["budgets"]]
    for key, (label, colour) in _LOOK.items():
        left.plot(bases, [budget[key]["speedup"] for budget in cell["budgets"]], "o-", color=colour, label=label)
    left.axhline(cell["routing"]["speedup"], color="black", linewidth=0.8, linestyle=":", label="routing, no drafts")
    left.set(xlabel="d_base", ylabel="speedup", xticks=bases)
    left.set_title(f"{cell['model']}, {cell['workload']}, {cell['method']}", fontsize=8)
    for i, budget in enumerate(cell["budgets"]):
        tails = [split["depths"][0] for split in budget["splits"]]
        shade = 0.25 + 0.75 * (i + 1) / len(bases)
        gains = [split["speedup"] for split in budget["splits"]]
        right.plot(tails, gains, ".-", color=COLOURS["tail"], alpha=shade)
        right.annotate(f"{budget['base']}", (tails[-1], gains[-1]), fontsize=7)
    right.set(xlabel="d_tail = 2 d_base - d_bulk")
    right.set_title("by split (number: d_base)", fontsize=8)
