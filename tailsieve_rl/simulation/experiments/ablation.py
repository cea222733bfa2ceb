"""A.2: what output length, concurrency and each component of TailSieve contribute."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.ablated import COMPONENTS, CONVERGE, CORE, Run, capped
from tailsieve_rl.simulation.experiments.cells import RESPONSES, measure
from tailsieve_rl.simulation.experiments.tables import FACTORIES, MEASURED, entry
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.workloads import Workload

DESCRIPTION = "A.2: speedup by output length and by concurrency at the same total work, and with each component off"

MODEL, GROUPS, REPEATS = "qwen3.5-4b", 64, 20
CAPS = (4096, 8192, 16_384)
REPLICAS = (2, 4, 8, 16)


def run(options: Options, workloads: Sequence[str] = tuple(FACTORIES)) -> Results:
    seeds, count = options.seeds(REPEATS), replicas(MODEL)
    found: dict[str, list[dict[str, Any]]] = {"components": [], "output_length": [], "concurrency": []}

    def add(part: str, policies: Mapping[str, Run], streams: Sequence[Workload], replicas: int, **varied: Any) -> None:
        cell = _cell(policies, streams, replicas)
        found[part].append({**varied, "replicas": replicas, **cell})
        gains = {key: round(policy["speedup"], 3) for key, policy in cell["policies"].items() if key != "uniform"}
        options.progress(f"{part} {varied} R={replicas}: {gains}")

    for workload in workloads:
        streams = [FACTORIES[workload](seed, RESPONSES, evolving=False) for seed in seeds]
        add("components", COMPONENTS, streams, count, workload=workload)
        for cap in CAPS:
            add("output_length", CORE, [capped(s, cap) for s in streams], count, workload=workload, cap=cap)
        for size in REPLICAS:
            add("concurrency", CORE, streams, size, workload=workload, requests_a_replica=GROUPS * RESPONSES // size)
    return {"model": MODEL, "groups": GROUPS, **found}


def _cell(policies: Mapping[str, Run], streams: Sequence[Workload], replicas: int) -> dict[str, Any]:
    model, setup = profile(MODEL), Setup(GROUPS, RESPONSES, replicas)
    runs = {
        key: [measure(make(setup, model, stream), setup, stream, model, CONVERGE, MEASURED) for stream in streams]
        for key, make in policies.items()
    }
    baseline_s = [measured.step_s for measured in runs["uniform"]]
    return {"policies": {key: entry(measured, baseline_s) for key, measured in runs.items()}}


_LABELS = MappingProxyType(
    {
        "tailsieve": "TailSieve (joint)",
        "hierarchical": "TailSieve (hierarchical)",
        "no_inner_loop": "inner loop off",
        "no_outer_loop": "outer loop off (m = R/2)",
        "no_loops": "both off (default q, m)",
        "no_request_dispatch": "request dispatch off",
        "no_selection": "selection off",
    }
)
_COLOURS = (COLOURS["tailsieve"], COLOURS["bulk"])


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "ablation.png"
    with figure(path, columns=3, size=(3.7, 3.2)) as axes:
        components, length, concurrency = axes[0]
        _bars(components, results["components"])
        _lines(length, results["output_length"], "cap")
        length.set_xlabel("cap, tokens (same tokens in all)")
        length.set_title("Output length")
        _lines(concurrency, results["concurrency"], "requests_a_replica")
        concurrency.set_xlabel("requests a replica (R = 16 ... 2)")
        concurrency.set_title("Concurrency")
    return [path]


def _bars(panel: Any, cells: Sequence[Mapping[str, Any]]) -> None:
    for index, cell in enumerate(cells):
        at = np.arange(len(_LABELS)) + (index - (len(cells) - 1) / 2) * 0.38
        value, reach = _speedups([cell["policies"][key] for key in _LABELS])
        panel.barh(at, value - 1, height=0.36, left=1, color=_COLOURS[index], xerr=reach, label=cell["workload"])
    panel.set_yticks(range(len(_LABELS)), _LABELS.values())
    panel.invert_yaxis()
    panel.axvline(1, color=COLOURS["uniform"])
    panel.set_xlim(_limits([policy["speedup"] for cell in cells for policy in cell["policies"].values()]))
    panel.set(xlabel="speedup over uniform groups")
    panel.set_title("Components")
    panel.legend(loc="lower right", borderaxespad=0.2)


def _lines(panel: Any, cells: Sequence[Mapping[str, Any]], varied: str) -> None:
    for colour, workload in zip(_COLOURS, dict.fromkeys(cell["workload"] for cell in cells), strict=False):
        these = sorted((cell for cell in cells if cell["workload"] == workload), key=lambda cell: cell[varied])
        value, reach = _speedups([cell["policies"]["tailsieve"] for cell in these])
        panel.errorbar(range(len(these)), value, reach, marker="o", capsize=2, color=colour, label=workload)
        panel.set_xticks(range(len(these)), [cell[varied] for cell in these])
    panel.axhline(1, color=COLOURS["uniform"])
    panel.set_ylim(_limits([cell["policies"]["tailsieve"]["speedup"] for cell in cells]))
    panel.set_xlim(-0.3, len(panel.get_xticks()) - 0.7)
    panel.set(ylabel="TailSieve's speedup")
    panel.legend()


def _limits(speedups: Sequence[float]) -> tuple[float, float]:
    """Of an axis: intervals of a few repeats would be wider than all that there is to see."""
    return min(*speedups, 1.0) - 0.05, max(*speedups, 1.0) + 0.1


def _speedups(policies: Sequence[Mapping[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    value = np.array([policy["speedup"] for policy in policies])
    return value, np.abs(np.array([policy["ci95"] for policy in policies]).T - value)
