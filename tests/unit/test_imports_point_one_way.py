"""Imports point one way (design.md, section 4). Read from the source: nothing is imported to find out."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "tailsieve_rl"
ROOT = Path(__file__).resolve().parents[2] / PACKAGE

CORE = f"{PACKAGE}.routing"
NOT_IN_CORE = ("torch", "ray", "verl", "vllm", "time", "random", "asyncio")
ENGINES = ("verl", "vllm")
MAY_IMPORT_ENGINES = ("rollout", "engines", "platforms", "algorithms")
MAY_IMPORT_ENGINES_LATE = ("plugin", "doctor", "versions", "train")


@dataclass(frozen=True)
class Import:
    """`module` imports `target` in a line; `late` when that happens inside a function."""

    module: str
    target: str
    line: int
    late: bool

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}, imports {self.target}"


def imports_of(root: Path) -> list[Import]:
    """Every import of a package's source, those inside functions and by import_module("...") included."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        package = ".".join(parts[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        found += [Import(module, target, line, late) for target, line, late in _targets(tree, package, late=False)]
    return found


def _targets(node: ast.AST, package: str, late: bool) -> Iterator[tuple[str, int, bool]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno, late) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        yield from ((f"{base}.{alias.name}", node.lineno, late) for alias in node.names)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
            yield str(first.value), node.lineno, late
    inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from _targets(child, package, late or inside)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def offences(root: Path) -> list[str]:
    """What breaks a rule, in words."""
    found = []
    for item in imports_of(root):
        part = item.module.split(".")[1] if "." in item.module else ""
        if within(item.module, CORE):
            ours = within(item.target, PACKAGE) and not within(item.target, CORE)
            if ours or any(within(item.target, name) for name in NOT_IN_CORE):
                found.append(f"{item}: the decision core is pure and knows nothing of ours")
        if any(within(item.target, name) for name in ENGINES) and part not in MAY_IMPORT_ENGINES:
            if part not in MAY_IMPORT_ENGINES_LATE:
                found.append(f"{item}: only {', '.join(MAY_IMPORT_ENGINES)} import verl and vllm")
            elif not item.late:
                found.append(f"{item}: it must be importable without verl and vllm")
    return found


def test_imports_point_one_way():
    assert offences(ROOT) == []


def test_the_core_is_there_and_was_read():
    modules = {item.module for item in imports_of(ROOT)}
    assert {"tailsieve_rl.routing.plan", "tailsieve_rl.routing.policies.two_pool"} <= modules


def test_importing_the_core_loads_no_heavy_package():
    code = (
        "import sys, tailsieve_rl.routing.step, tailsieve_rl.routing.policies, tailsieve_rl.routing.ledger\n"
        "print(*sorted({'torch', 'ray', 'verl', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT.parent, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("routing/plan.py", "import time"),
        ("routing/plan.py", "def f():\n    from random import Random"),
        ("routing/policies/a.py", "from ...rollout import coordinator"),
        ("routing/policies/a.py", "from tailsieve_rl import telemetry"),
        ("routing/__init__.py", "from .. import cli"),
        ("routing/plan.py", "import importlib\nimportlib.import_module('torch.nn')"),
        ("simulation/a.py", "def f():\n    import vllm.config"),
        ("telemetry/a.py", "if True:\n    from verl import DataProto"),
        ("cli.py", "import verl"),
        ("plugin.py", "import verl"),
        ("doctor.py", "class A:\n    from vllm import LLM"),
    ],
)
def test_an_import_that_points_the_wrong_way_is_found(tmp_path, file, source):
    assert len(offences(_package(tmp_path, file, source))) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("routing/policies/a.py", "from ..plan import StepPlan\nfrom . import dispatch\nimport numpy"),
        ("routing/plan.py", "import timeit_of_ours\nfrom tailsieve_rl.routing.allocation import Allocation"),
        ("rollout/a.py", "import verl, time\nfrom tailsieve_rl.routing.plan import StepPlan"),
        ("engines/vllm/server.py", "from vllm import LLM"),
        ("plugin.py", "def f():\n    import verl\nimport importlib.metadata\nimportlib.metadata.version('verl')"),
        ("engines/__init__.py", "from .vllm import replica"),
        ("cli.py", "from tailsieve_rl.engines.vllm import replica"),
    ],
)
def test_an_import_that_points_the_right_way_is_accepted(tmp_path, file, source):
    assert offences(_package(tmp_path, file, source)) == []


def _package(tmp_path: Path, file: str, source: str) -> Path:
    path = tmp_path / PACKAGE / file
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    return tmp_path / PACKAGE
