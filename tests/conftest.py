"""What all tests share: the marker, the time limit and the order of each folder, and a place for Ray's files."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent

TIMEOUT_S = {"unit": 120, "simulation": 300, "live": 600, "e2e": 900}
"""Folder (and marker) -> time limit of a test that sets none, in the order in which the folders run."""

# Nothing here may depend on a network, an account or the user's own settings. Set before any test imports a library.
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "WANDB_MODE": "disabled",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "ranks of each engine in the live and the drop-in tests (scripts/compat.sh has a row with 2)"
    parser.addoption("--tensor-parallel", type=int, default=1, metavar="N", help=what)


@pytest.fixture(scope="session")
def tensor_parallel(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("tensor_parallel")


WITH_ENGINES = ("live", "e2e")
"""Folders of which one test at a time runs, whatever `--numprocesses` is: each takes all cores, and much memory."""

MOSTLY_WITHOUT = "test_demo_model.py"
"""Trains for two minutes before it starts one."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For `--numprocesses`: one process for the tests with engines, files of other tests to whoever is free."""
    from xdist.scheduler import LoadScopeScheduling

    class EnginesApart(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.split("::")[0])
            apart = file.parts[1] in WITH_ENGINES and file.name != MOSTLY_WITHOUT
            return "engines" if apart else str(file)

    return EnginesApart(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test by its folder; quick folders first, or last where they run beside the others."""
    order = list(TIMEOUT_S)
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder not in TIMEOUT_S:
            raise pytest.UsageError(f"{item.path}: tests belong into one of {', '.join(TIMEOUT_S)}")
        item.add_marker(folder)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S[folder]))
    beside = hasattr(config, "workerinput")
    items.sort(key=lambda item: order.index(item.path.relative_to(HERE).parts[0]), reverse=beside)


@pytest.fixture
def ray_tmp() -> Iterator[Path]:
    """A folder for `ray.init(_temp_dir=...)` or `ray_kwargs.ray_init._temp_dir`, removed after Ray has shut down.

    pytest's `tmp_path` is too long for it: Ray puts sockets there, and their paths have about 100 characters at most.
    """
    folder = Path(tempfile.mkdtemp(prefix="ts"))
    yield folder
    if ray := sys.modules.get("ray"):
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)
