"""Docstrings are rendered by `scripts/docs.sh`; that public things have one is a rule of ruff's (pyproject.toml)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_module_of_the_decision_core_is_rendered_without_a_warning(tmp_path):
    files = [file.relative_to(ROOT).with_suffix("") for file in (ROOT / "tailsieve_rl/routing").rglob("*.py")]
    modules = [".".join(file.parts).removesuffix(".__init__") for file in files]
    strict = ["-W", "error", "-W", "ignore:The module specification"]  # those in a package are found and named
    command = [sys.executable, *strict, "-m", "pdoc", "--docformat", "google", "-o", tmp_path, *modules]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    pages = {".".join(p.relative_to(tmp_path).with_suffix("").parts) for p in tmp_path.rglob("*.html")}
    assert set(modules) <= pages
