"""The printed table and the figure of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tailsieve_rl.simulation.figures import COLOURS, figure

UNITS = {"simulated": "virtual", "emulated": "emulated", "vllm": "measured"}
"""What the seconds of each backend are."""

LEAST_ROUNDS = 8
"""Rounds below which an interval would say more than is known."""


def table(results: Mapping[str, Any]) -> str:
    """One block of lines a cell."""
    return "\n\n".join(_cell_table(results["backend"], cell) for cell in results["cells"])


def _cell_table(backend: str, cell: Mapping[str, Any]) -> str:
    head = ["policy", f"step, {UNITS[backend]} s", "over uniform", "over least_loaded", "q", "m", "wasted"]
    beside, drafting = backend == "emulated", any(_drafts(found) for found in cell["policies"].values())
    drafting_head = ["over the best depth (95 %)", "drafts, tail/bulk"] if drafting else []
    rows = [[*head, *drafting_head, *(["virtual time"] if beside else [])]]
    for name, found in cell["policies"].items():
        times = found["step_s_by_round"]
        low, high = min(times), max(times)
        over = found["speedup_over_least_loaded"]
        row = [
            name,
            f"{found['step_s']:.1f} ({low:.1f}-{high:.1f})",
            _interval(found["speedup"], found["speedup_ci95"] if len(times) >= LEAST_ROUNDS else None),
            "-" if over is None else f"{over:.3f}",
            f"{found['q']:.0f}",
            f"{found['m']:.0f}",
            f"{100 * found['wasted_fraction']:.1f} %",
        ]
        if drafting:
            over_best = found.get("speedup_over_best_depth")
            row.append("-" if over_best is None else _interval(over_best, found["speedup_over_best_depth_ci95"]))
            row.append("/".join("by batch" if depth is None else f"{depth:.0f}" for depth in _depths(found)))
        if beside:
            row.append(f"{found['virtual_speedup']:.3f} ({100 * found['step_error']:+.1f} %)")
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    size = f"{cell['groups']} groups x {cell['responses']} on {cell['replicas']} {backend} replicas"
    return "\n".join([f"{cell['model']}, {cell['workload']}: {size}", *lines])


def _interval(value: float, ends: Sequence[float] | None) -> str:
    return f"{value:.3f}" if ends is None else f"{value:.3f} ({ends[0]:.2f}-{ends[1]:.2f})"


def _depths(found: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return found["draft_depth_tail"], found["draft_depth_bulk"]


def _drafts(found: Mapping[str, Any]) -> bool:
    return any(depth is None or depth > 0 for depth in _depths(found))


def draw(results: Mapping[str, Any], path: Path) -> None:
    """Speedup over uniform of every policy, one panel a cell."""
    cells = results["cells"]
    columns = min(2, len(cells))
    rows = -(-len(cells) // columns)
    with figure(path, rows=rows, columns=columns, size=(4.6, 2.6)) as axes:
        for i, panel in enumerate(axes.ravel()):
            if i >= len(cells):
                panel.set_visible(False)
                continue
            cell = cells[i]
            names = list(cell["policies"])[::-1]
            speedups = [cell["policies"][name]["speedup"] for name in names]
            colours = [COLOURS["tailsieve" if name.startswith("tailsieve") else "uniform"] for name in names]
            panel.barh(names, [value - 1 for value in speedups], left=1, color=colours)
            for y, value in enumerate(speedups):
                panel.annotate(f" {value:.2f}", (max(value, 1.0), y), va="center", fontsize=8)
            panel.axvline(1.0, color="black", linewidth=0.8)
            panel.set_xlim(min(0.95, *speedups) - 0.02, max(1.1, *speedups) + 0.08)
            panel.set_xlabel(f"speedup over uniform groups ({results['backend']})")
            panel.set_title(
                f"{cell['model']}, {cell['workload']}, N = {cell['groups']}, R = {cell['replicas']}", fontsize=9
            )
