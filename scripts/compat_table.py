"""What the rows of the matrix gave: docs/data/compat.json, and the table in the README between two markers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data" / "compat.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- compat: begin -->", "<!-- compat: end -->"
DROP_IN = "tests/e2e/test_drop_in.py"
VERSIONS = {"python": "Python", "verl": "verl", "vllm": "vLLM", "torch": "torch", "transformers": "transformers"}
COLUMNS = ("row", *VERSIONS.values(), "doctor", "live tests", "drop-in test", "date")


def publish(result: dict[str, Any], order: list[str]) -> None:
    """Put a row's result in the place of its last one, and draw the table anew."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, marker, after = rest.partition(END)
    if not marker:
        raise SystemExit(f"compat: error: {README} lacks the markers {BEGIN} and {END}")
    rows = {row["name"]: row for row in json.loads(DATA.read_text())["rows"]} if DATA.exists() else {}
    rows[result["name"]] = result
    kept = [rows[name] for name in order if name in rows]
    DATA.write_text(json.dumps({"rows": kept}, indent=2) + "\n")
    README.write_text(f"{before}{BEGIN}\n{table(kept)}\n{END}{after}")


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a line a row, then each failure by name, those of one cause together."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    failures = []
    for row in rows:
        lines.append(f"| {' | '.join(_cells(row))} |")
        failures += [f"* {row['name']}: {line}" for line in _failures(row)]
    return "\n".join([*lines, *([""] if failures else []), *failures])


def _cells(row: dict[str, Any]) -> list[str]:
    versions = row.get("versions", row["asked"])
    shown = [str(versions[name]) for name in VERSIONS]
    if not row["built"]:
        return [row["name"], *shown, "-", "not built", "not built", row["date"]]
    live = [found for file, found in row["tests"].items() if file != DROP_IN]
    doctor = "refuses" if any(line.startswith("FAIL") for line in row["doctor"]) else "ok"
    return [row["name"], *shown, doctor, _count(live), _count([row["tests"][DROP_IN]]), row["date"]]


def _count(found: list[dict[str, Any]]) -> str:
    counts = {
        "passed": sum(f["passed"] for f in found),
        "skipped": sum(f["skipped"] for f in found),
        "failed": sum(len(f["failed"]) for f in found),
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count or name == "passed")


def _failures(row: dict[str, Any]) -> list[str]:
    if not row["built"]:
        return [row["why"]]
    lines = []
    for file, found in row["tests"].items():
        tests_of: dict[str, list[str]] = {}
        for name, why in found["failed"].items():
            tests_of.setdefault(why, []).append(f"`{name}`")
        lines += [f"`{file}`, {', '.join(names)}: {why}" for why, names in tests_of.items()]
    return lines
