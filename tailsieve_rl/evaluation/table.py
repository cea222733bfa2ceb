"""The table in the paper's form (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tailsieve_rl.evaluation.benchmarks import BENCHMARKS
from tailsieve_rl.evaluation.pass_at_k import paired_interval, pass_at_k


def table(models: Sequence[Mapping[str, Any]], base: Mapping[str, Any] | None, sets: Sequence[str]) -> str:
    """Models as rows, sets as columns, in Markdown; in brackets the change from the base, percentage points.

    Args:
        models: results.
        base: results of the base model; None: no brackets.
        sets: columns.
    """
    headings = ["Model", *(BENCHMARKS[name].heading for name in sets)]
    rows = [] if base is None else [[f"{base['model']['name']} (base)", *(_cell(base, None, name) for name in sets)]]
    rows += [[model["model"]["name"], *(_cell(model, base, name) for name in sets)] for model in models]
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    lines = [_line(headings, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def notes(model: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> list[str]:
    """How a model's accuracies were measured, and how sure they are (95 %): lines for below the table."""
    rounds = [line for stream in model["rollouts"]["streams"].values() for line in stream]
    q, m = (sorted({line[name] for line in rounds}) for name in ("q", "m"))
    waste = sum(line["aborted_tokens"] for line in rounds) / max(1, model["rollouts"]["tokens"])
    lines = [
        f"{model['model']['name']}: policy {model['rollouts']['policy']} on {model['rollouts']['replicas']} replicas, "
        f"{len(rounds)} rounds, q {q[0]}-{q[-1]}, m {m[0]}-{m[-1]}, {100 * waste:.1f} % of tokens thrown away; "
        f"{model['time_s']['generation']:.0f} s of generation, {model['time_s']['total']:.0f} s in all"
    ]
    for name, found in model["sets"].items():
        low, high = found["accuracy_ci95"]
        left_out = found["made"].get("too_long", 0) + found["made"].get("unanswered", 0)
        lines.append(
            f"  {BENCHMARKS[name].heading} of {found['problems']} problems, n {found['n']}: "
            f"{_percent(found['accuracy'])} ({_percent(low)} to {_percent(high)})"
            f"{'' if base is None else _change(model, base, name)}; "
            f"{found['response_tokens']['p50']:.0f} tokens (P50), {_percent(found['truncated_share'])} truncated, "
            f"{_percent(found['regenerated_share'])} regenerated"
            + (f"; {left_out} problems left out when the data was made" if left_out else "")
        )
    return lines


def difference(model: Mapping[str, Any], base: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The change of a set's accuracy from the base, with its 95 % interval, problem by problem."""
    values, others = ([pass_at_k(r["n"], c, r["k"]) for c in r["correct"]] for r in (_of(model, name), _of(base, name)))
    change = _of(model, name)["accuracy"] - _of(base, name)["accuracy"]
    return {"accuracy": change, "ci95": paired_interval(values, others)}


def _of(results: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = results["sets"][name]
    return found


def _change(model: Mapping[str, Any], base: Mapping[str, Any], name: str) -> str:
    change = difference(model, base, name)
    points = [f"{100 * value:+.2f}" for value in (change["accuracy"], *change["ci95"])]
    return f", change {points[0]} ({points[1]} to {points[2]})"


def _cell(results: Mapping[str, Any], base: Mapping[str, Any] | None, name: str) -> str:
    cell = _percent(_of(results, name)["accuracy"])
    return cell if base is None else f"{cell} ({100 * difference(results, base, name)['accuracy']:+.2f})"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
