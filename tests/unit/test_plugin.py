"""The plug-in reaches every process, says what failed, and takes the CPU platform only where there is nothing else."""

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailsieve_rl import versions

ROOT = Path(__file__).resolve().parents[2]


def python(code, *first_on_path, **environment):
    """Run code in a fresh process in which verl loads the plug-in."""
    path = os.pathsep.join([*map(str, first_on_path), str(ROOT)])
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("VERL_", "VLLM_"))},
        "PYTHONPATH": path,
        "VERL_USE_EXTERNAL_MODULES": "tailsieve_rl.plugin",
        **environment,
    }
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=110)


def test_verl_finds_the_entry_point_stays_light_and_every_part_registers_later(tmp_path):
    entry_point = "tailsieve = tailsieve_rl.plugin"
    assert f'"verl.plugins": ["{entry_point}"]' in (ROOT / "setup.py").read_text(encoding="utf-8")
    installed = tmp_path / "tailsieve_rl-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: tailsieve-rl\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(f"[verl.plugins]\n{entry_point}\n")
    done = python(
        "import sys, json, verl\n"
        "plugin = sys.modules['tailsieve_rl.plugin']\n"
        "heavy = {'vllm', 'verl.trainer', 'tailsieve_rl.rollout', 'tailsieve_rl.engines'} & set(sys.modules)\n"
        "before = dict(plugin.STATUS)\n"
        "import verl.trainer.ppo.v1, verl.workers.rollout.replica, verl.workers.engine, verl.utils.distributed\n"
        "print(json.dumps([list(heavy), before, plugin.STATUS]))",
        tmp_path,
        VERL_USE_EXTERNAL_MODULES="",
    )
    assert done.returncode == 0, done.stderr
    heavy, before, after = json.loads(done.stdout.splitlines()[-1])
    assert heavy == []
    assert before["rollout engines"] == "waiting for its verl module"
    assert set(after.values()) == {"ok"}, after


def test_a_part_that_cannot_be_imported_is_an_error_in_the_log_and_verl_goes_on():
    done = python(
        "import verl\n"
        "from tailsieve_rl import plugin\n"
        "plugin._install(plugin.Part('broken part', 'colorsys', 'tailsieve_rl.no_such_module'))\n"
        "import colorsys\n"
        "print(plugin.failures())"
    )
    assert done.returncode == 0, done.stderr
    assert "No module named 'tailsieve_rl.no_such_module'" in done.stdout
    assert "broken part is NOT active" in done.stderr


def test_a_missing_requirement_of_the_plug_in_is_an_error_in_the_log_and_verl_goes_on(tmp_path):
    (tmp_path / "wrapt.py").write_text("raise ImportError('broken installation')")
    done = python("import verl\nfrom tailsieve_rl import plugin\nprint(plugin.failures())", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "broken installation" in done.stdout
    assert "post-import hooks is NOT active" in done.stderr


@pytest.fixture
def machine(monkeypatch):
    """Set what torch was built for, what it finds, which vLLM is installed, and whether nvidia-smi answers."""
    import torch
    from verl.plugin.platform.platform_cuda import PlatformCUDA

    from tailsieve_rl.platforms import cpu

    def describe(torch_build, device_seen, vllm, smi=False, verl_platform=None):
        monkeypatch.setattr(
            torch.accelerator,
            "current_accelerator",
            lambda check_available=False: torch.device("cuda") if torch_build == "cuda" else None,
        )
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: device_seen)
        monkeypatch.setattr(cpu.versions, "installed", lambda name: vllm)
        monkeypatch.setattr(PlatformCUDA, "is_platform_available", lambda self, use_smi_check=False: smi)
        monkeypatch.delenv("VERL_PLATFORM", raising=False)
        if verl_platform:
            monkeypatch.setenv("VERL_PLATFORM", verl_platform)
        return cpu.selected()

    return describe


def test_a_torch_without_accelerators_runs_on_cpu(machine):
    assert machine("cpu", False, "0.30.0+cpu")
    assert machine("cpu", False, None)


def test_a_gpu_is_never_shadowed(machine):
    assert not machine("cuda", True, "0.30.0")
    assert not machine("cuda", True, "0.30.0+cpu")


def test_a_process_of_a_gpu_cluster_that_sees_no_gpu_is_not_a_cpu_run(machine):
    assert not machine("cuda", False, "0.30.0")
    assert not machine("cuda", False, "0.30.0+cpu", smi=True)


def test_the_usual_torch_of_a_machine_without_gpu_runs_on_cpu_with_the_cpu_build_of_vllm(machine):
    assert machine("cuda", False, "0.30.0+cpu")


def test_the_variable_of_verl_decides_when_set(machine):
    assert machine("cuda", True, "0.30.0", verl_platform="cpu")
    assert not machine("cpu", False, "0.30.0+cpu", verl_platform="nvidia")


def test_a_value_of_the_user_is_not_overwritten(monkeypatch):
    from tailsieve_rl.platforms import environment

    monkeypatch.setattr(environment.os, "environ", {"OMP_NUM_THREADS": "3"})
    added = environment.apply()
    assert "OMP_NUM_THREADS" not in added and environment.os.environ["OMP_NUM_THREADS"] == "3"
    assert added["VERL_PLATFORM"] == environment.os.environ["VERL_PLATFORM"] == "cpu"
    assert environment.apply() == {}


def test_the_cpu_build_of_vllm_is_found_as_vllm_and_its_plug_ins_once():
    from tailsieve_rl.platforms import vllm_distribution

    version = versions.installed("vllm")
    if not version or "cpu" not in version:
        pytest.skip("the CPU build of vLLM is not installed")
    before = len(importlib.metadata.entry_points(group="vllm.general_plugins"))
    vllm_distribution.alias()
    vllm_distribution.alias()
    assert importlib.metadata.version("vllm") == version
    assert len(importlib.metadata.entry_points(group="vllm.general_plugins")) == before


def test_the_patch_of_the_process_group_is_still_needed_and_works(monkeypatch):
    """When the first half fails, verl no longer needs cpu_patches.gloo_backend."""
    importlib.import_module("tailsieve_rl.plugin")
    from verl.utils import distributed

    from tailsieve_rl.platforms import cpu, cpu_patches

    if not cpu.active():
        pytest.skip("not a CPU run")
    backends = []
    monkeypatch.setattr(
        distributed.torch.distributed, "init_process_group", lambda **kw: backends.append(kw["backend"])
    )
    current = distributed.initialize_global_process_group_ray
    original = getattr(current, "__wrapped__", current)
    monkeypatch.setattr(distributed, "initialize_global_process_group_ray", original)
    original()
    cpu_patches.gloo_backend()
    distributed.initialize_global_process_group_ray()
    assert backends == ["cpu:gloo,cpu:gloo", "cpu:gloo"]
