"""Table 1: routing alone, five models, math and code, every policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, default_allocation
from tailsieve_rl.routing.policies.named import COMPARED, named_policy
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.tables import FACTORIES, measure_cell
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import PROFILES

DESCRIPTION = "Table 1: speedup over uniform groups of every policy, five models, math and code, N = 64"

GROUPS = 64
REPEATS = 20
ORACLES = ("uniform_oracle", "streamrl_oracle", "seer_oracle")
PAPER = MappingProxyType(
    {
        "math": {
            "uniform_oracle": (1.123, 1.085, 1.151, 1.154, 1.225),
            "streamrl_oracle": (1.030, 0.928, 1.113, 1.136, 1.174),
            "seer_oracle": (1.189, 1.082, 1.162, 1.169, 1.358),
            "tailsieve_fixed": (1.219, 1.112, 1.199, 1.144, 1.186),
            "tailsieve": (1.346, 1.112, 1.233, 1.180, 1.254),
        },
        "code": {
            "uniform_oracle": (1.033, 1.083, 1.001, 1.106, 1.107),
            "streamrl_oracle": (1.167, 1.094, 1.033, 1.100, 0.992),
            "seer_oracle": (1.282, 1.062, 0.971, 1.150, 1.406),
            "tailsieve_fixed": (1.560, 1.166, 1.310, 1.143, 1.179),
            "tailsieve": (1.670, 1.342, 1.403, 1.214, 1.442),
        },
    }
)
"""Table 1 of the paper, models in the order of PAPER_MODELS."""
PAPER_MODELS = ("qwen3.5-35b-a3b-tp2", "qwen3-30b-a3b-tp2", "qwen3.5-4b", "qwen3.5-2b", "qwen3-4b")


def run(options: Options, models: Sequence[str] = PROFILES) -> Results:
    cells = []
    for workload in FACTORIES:
        for model in models:
            cell = measure_cell(model, workload, GROUPS, options.seeds(REPEATS), policies)
            _keep_best_dedicated(cell)
            cells.append({**cell, **_judged(cell)})
            ours = cells[-1]["policies"]["tailsieve"]["speedup"]
            options.progress(f"{workload} {model}: tailsieve {ours:.3f}x, best static {cells[-1]['best_static']}")
    return {"cells": cells, "means": _means(cells)}


def policies(setup: Setup, model: DecodeModel) -> dict[str, RoutingPolicy]:
    """What is compared. The paper's full controller stands beside ours as `tailsieve_hierarchical`.

    StreamRL's number of dedicated replicas is not stated in the paper: all are tried, and the best one is kept.
    """
    streamrl = [f"streamrl_oracle_{k}" for k in range(1, setup.replicas)]
    names = [name for name in COMPARED if name != "streamrl_oracle"]
    return {name: named_policy(name, setup, default_allocation(setup), model) for name in (*names, *streamrl)}


def _keep_best_dedicated(cell: dict[str, Any]) -> None:
    """Leave one StreamRL oracle, at its best number of dedicated replicas, with the whole sweep in it."""
    found, prefix = cell["policies"], "streamrl_oracle_"
    sweep = {int(name.removeprefix(prefix)): found.pop(name) for name in list(found) if name.startswith(prefix)}
    best = max(sweep, key=lambda k: sweep[k]["speedup"])
    found["streamrl_oracle"] = {
        **sweep[best],
        "dedicated": best,
        "speedup_by_dedicated": {k: entry["speedup"] for k, entry in sweep.items()},
    }


def _judged(cell: Mapping[str, Any]) -> dict[str, Any]:
    """TailSieve's gain as a share of the best static pair's, of the graded oracle's and of the bound's.

    And whether it is ahead of the paper's oracles; a controller of (q, m) can be where the best static pair is.
    """
    found = cell["policies"]
    base, ours = found["uniform"]["step_s"], found["tailsieve"]["step_s"]
    limits = {"static": cell["best_static_s"], "graded": found["graded_oracle"]["step_s"], "bound": cell["bound_s"]}
    oracle = max(ORACLES, key=lambda name: found[name]["speedup"])
    ratios = np.array(found[oracle]["step_s_by_stream"]) / np.array(found["tailsieve"]["step_s_by_stream"])
    return {
        "gain_share": {name: (base - ours) / (base - limit) for name, limit in limits.items()},
        "best_oracle": oracle,
        "ahead_of_all_oracles": bool(ratios.mean() > 1.0),
        "static_ahead_of_all_oracles": found[oracle]["step_s"] > cell["best_static_s"],
        "paper": {name: row[PAPER_MODELS.index(cell["model"])] for name, row in PAPER[cell["workload"]].items()},
    }


def _means(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arithmetic means of TailSieve's speedup over the models, ours and the paper's."""
    return {
        workload: {
            "tailsieve": float(
                np.mean([c["policies"]["tailsieve"]["speedup"] for c in cells if c["workload"] == workload])
            ),
            "paper": float(np.mean(PAPER[workload]["tailsieve"])),
        }
        for workload in dict.fromkeys(cell["workload"] for cell in cells)
    }


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "policies.png"
    shown = (
        ("uniform_oracle", COLOURS["uniform"]),
        ("streamrl_oracle", COLOURS["other"]),
        ("seer_oracle", COLOURS["bulk"]),
        ("tailsieve_fixed", COLOURS["oracle"]),
        ("tailsieve", COLOURS["tailsieve"]),
        ("graded_oracle", COLOURS["good"]),
    )
    workloads = list(dict.fromkeys(cell["workload"] for cell in results["cells"]))
    with figure(path, rows=len(workloads), size=(8.4, 2.6)) as axes:
        for row, workload in enumerate(workloads):
            panel = axes[row, 0]
            cells = [cell for cell in results["cells"] if cell["workload"] == workload]
            at = np.arange(len(cells))
            for i, (name, colour) in enumerate(shown):
                found = [cell["policies"][name] for cell in cells]
                value = np.array([entry["speedup"] for entry in found])
                reach = np.abs(np.array([entry["ci95"] for entry in found]).T - value)
                place = at + (i - (len(shown) - 1) / 2) * 0.14
                panel.bar(place, value - 1, 0.13, bottom=1, color=colour, yerr=reach, label=name, error_kw={"lw": 0.8})
                if name in PAPER[workload]:
                    paper = [cell["paper"][name] for cell in cells]
                    panel.plot(place, paper, "_", color="black", markersize=7, label="paper" if not i else None)
            panel.axhline(1.0, color="black", linewidth=0.8)
            panel.set_xticks(at, [cell["model"] for cell in cells])
            panel.set(ylabel="speedup over uniform groups")
            panel.set_title(f"{workload}: modelled H100, {len(cells)} models, N = {GROUPS} x 8")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=7)
    return [path]
