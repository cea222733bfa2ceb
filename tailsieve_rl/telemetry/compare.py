"""The table that the quickstart ends with: runs side by side, from their result files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tailsieve_rl.telemetry.runs import read_runs, relative


def table(folders: Sequence[str | Path]) -> str:
    """One column a run: generation time with its spread, reward, response length, q and m.

    Raises:
        RunFilesError: if a folder holds no run, or the runs cannot be compared.
    """
    runs = [(run.summary, run.steps) for run in read_runs(folders)]
    rows = [("", [summary["mode"] for summary, _ in runs])]
    rows += [(name, [value(summary, steps) for summary, steps in runs]) for name, value in _ROWS]
    first = runs[0][1]
    rows.insert(3, ("  relative to the first run, step by step (95 %)", [_relative(steps, first) for _, steps in runs]))
    names = [name for name, _ in rows]
    width = max(map(len, names))
    widths = [max(len(cells[i]) for _, cells in rows) for i in range(len(runs))]
    lines = [
        f"{name:<{width}}  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)).rstrip()
        for name, cells in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _generation_time(summary: dict[str, Any], steps: list[dict[str, Any]]) -> str:
    times = [step["gen_time_s"] for step in steps]
    low, _, high = quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    return f"{median(times):.2f} ({low:.2f}-{high:.2f})"


def _relative(steps: list[dict[str, Any]], baseline: list[dict[str, Any]]) -> str:
    """Generation time relative to the baseline's, with its interval."""
    ratio = None if steps is baseline else relative(steps, baseline)
    return "-" if ratio is None else "{:.2f} ({:.2f}-{:.2f})".format(*ratio)


def _reward(summary: dict[str, Any], steps: list[dict[str, Any]]) -> str:
    """Rollouts without training have none."""
    return f"{summary['reward_first']:.3f} -> {summary['reward_last']:.3f}" if "reward_first" in summary else "-"


def _over_steps(key: str) -> Callable[[dict[str, Any], list[dict[str, Any]]], str]:
    def value(summary: dict[str, Any], steps: list[dict[str, Any]]) -> str:
        seen = [step[key] for step in steps]
        return f"{seen[0]}" if len(set(seen)) == 1 else f"{min(seen)}-{max(seen)}"

    return value


_ROWS: tuple[tuple[str, Callable[[dict[str, Any], list[dict[str, Any]]], str]], ...] = (
    ("runs on", lambda s, _: f"{s['backend']}"),
    ("generation time a step, s: median (quartiles)", _generation_time),
    ("steps / groups consumed", lambda s, _: f"{s['steps']} / {s['consumed_groups']}"),
    ("off-policy responses", lambda s, _: f"{s.get('off_policy_trajectories', '-')}"),
    ("reward, first steps -> last steps", _reward),
    (
        "response length P50 / P90 / max, tokens",
        lambda s, _: " / ".join(f"{s[f'response_length_{p}']:.0f}" for p in ("p50", "p90", "max")),
    ),
    ("q, isolated groups", _over_steps("q")),
    ("m, tail replicas", _over_steps("m")),
    ("tokens generated and thrown away", lambda _, steps: f"{sum(step['aborted_tokens'] for step in steps)}"),
)


def compare(folders: Sequence[str]) -> None:
    """Print the table and where the numbers are.

    Raises:
        RunFilesError: if a folder holds no run, or the runs cannot be compared.
    """
    print(table(folders))
    for folder in folders:
        print(f"{Path(folder) / 'summary.json'}")
