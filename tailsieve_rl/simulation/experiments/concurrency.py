"""Table 4: routing alone against uniform groups as a step has more groups."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.control import Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import LeastLoaded, RoutingPolicy, Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.tables import FACTORIES, measure_cell
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import PROFILES

DESCRIPTION = "Table 4: speedup over uniform groups at N = 64, 128 and 256, five models, math and code"

GROUPS = (64, 128, 256)
REPEATS = 20
PAPER = MappingProxyType(
    {
        ("qwen3.5-35b-a3b-tp2", "math"): (1.346, 1.199, 1.122),
        ("qwen3.5-4b", "math"): (1.233, 1.225, 1.191),
        ("qwen3.5-2b", "math"): (1.180, 1.129, 1.177),
        ("qwen3-30b-a3b-tp2", "math"): (1.112, 1.023, 1.121),
        ("qwen3-4b", "math"): (1.254, 1.215, 1.306),
        ("qwen3.5-35b-a3b-tp2", "code"): (1.670, 1.214, 1.142),
        ("qwen3.5-4b", "code"): (1.403, 1.453, 1.240),
        ("qwen3.5-2b", "code"): (1.214, 1.108, 1.101),
        ("qwen3-30b-a3b-tp2", "code"): (1.342, 1.163, 1.091),
        ("qwen3-4b", "code"): (1.442, 1.367, 1.248),
    }
)
"""Table 4 of the paper, in the order of GROUPS."""


def run(options: Options, groups: Sequence[int] = GROUPS, models: Sequence[str] = PROFILES) -> Results:
    cells = []
    for model in models:
        for workload in FACTORIES:
            for count in groups:
                cell = measure_cell(model, workload, count, options.seeds(REPEATS), policies)
                cell["paper_speedup"] = PAPER[model, workload][GROUPS.index(count)] if count in GROUPS else None
                cells.append(cell)
                options.progress(f"{model} {workload} N={count}: {cell['policies']['tailsieve']['speedup']:.3f}x")
    return {"cells": cells, "means": _means(cells)}


def policies(setup: Setup, model: DecodeModel) -> dict[str, RoutingPolicy]:
    """What is compared, the baseline first."""
    joint = Joint(default_allocation(setup), model)
    return {"uniform": Uniform(), "least_loaded": LeastLoaded(), "tailsieve": TwoPool(joint)}


def _means(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Arithmetic means over the models, ours and the paper's."""
    found = []
    for workload, groups in sorted({(cell["workload"], cell["groups"]) for cell in cells}):
        these = [cell for cell in cells if (cell["workload"], cell["groups"]) == (workload, groups)]
        paper = [cell["paper_speedup"] for cell in these if cell["paper_speedup"]]
        found.append(
            {
                "workload": workload,
                "groups": groups,
                "tailsieve": float(np.mean([cell["policies"]["tailsieve"]["speedup"] for cell in these])),
                "least_loaded": float(np.mean([cell["policies"]["least_loaded"]["speedup"] for cell in these])),
                "paper": float(np.mean(paper)) if paper else None,
            }
        )
    return found


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "concurrency.png"
    cells = results["cells"]
    models = list(dict.fromkeys(cell["model"] for cell in cells))
    workloads = list(dict.fromkeys(cell["workload"] for cell in cells))
    with figure(path, rows=len(workloads), columns=len(models), size=(2.5, 2.4)) as axes:
        for row, workload in enumerate(workloads):
            for column, model in enumerate(models):
                panel = axes[row, column]
                panel.sharey(axes[0, 0])
                _panel(panel, [cell for cell in cells if (cell["model"], cell["workload"]) == (model, workload)])
                panel.set_title(f"{model}, {workload}", fontsize=8)
                if not column:
                    panel.set_ylabel("speedup over uniform")
                if row == len(workloads) - 1:
                    panel.set_xlabel("groups a step, N")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return [path]


def _panel(panel: Any, cells: Sequence[Mapping[str, Any]]) -> None:
    at = np.arange(len(cells))
    shown = (
        ("least_loaded", "least loaded", -0.12, COLOURS["bulk"]),
        ("tailsieve", "TailSieve", 0.0, COLOURS["tailsieve"]),
    )
    for key, label, shift, colour in shown:
        found = [cell["policies"][key] for cell in cells]
        value = np.array([policy["speedup"] for policy in found])
        reach = np.abs(np.array([policy["ci95"] for policy in found]).T - value)
        panel.errorbar(at + shift, value, reach, marker="o", markersize=4, capsize=2, color=colour, label=label)
    static = [cell["policies"]["uniform"]["step_s"] / cell["best_static_s"] for cell in cells]
    panel.plot(
        at + 0.12, static, "_", markersize=11, markeredgewidth=2, color=COLOURS["good"], label="best static (q, m)"
    )
    paper = [cell["paper_speedup"] for cell in cells]
    if all(paper):
        panel.plot(at + 0.12, paper, "D", markersize=4, color=COLOURS["oracle"], label="paper (H100, measured)")
    panel.axhline(1.0, color=COLOURS["uniform"], linewidth=1)
    panel.set_xticks(at, [cell["groups"] for cell in cells])
    panel.set_xlim(-0.4, len(cells) - 0.6)
