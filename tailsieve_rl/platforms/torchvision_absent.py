"""Lets vLLM import Qwen3.5 where torchvision is not installed.

    version   transformers 5.10.4: models/qwen2_vl/image_processing_qwen2_vl.py and video_processing_qwen2_vl.py
    why       both import torchvision first thing, and vLLM's Qwen3.5, of which one module serves text and images,
              imports both. There is no torchvision for the CPU environment, which has another build of torch
    the end   when tests/unit/test_torchvision_absent.py finds that they import without this

Only while one of these two is imported, and only if torchvision is not there, does the name stand for an empty module.
What they then hold raises ImportError as soon as it is used, which happens with images only.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

NEEDY = (
    "transformers.models.qwen2_vl.image_processing_qwen2_vl",
    "transformers.models.qwen2_vl.video_processing_qwen2_vl",
)
IMPORTED = (
    "torchvision",
    "torchvision.transforms",
    "torchvision.transforms.v2",
    "torchvision.transforms.v2.functional",
)


class _Absent(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"{self.__name__}.{name} was used, and torchvision is not installed")


@contextlib.contextmanager
def _stand_in() -> Iterator[None]:
    modules = {name: _Absent(name) for name in IMPORTED}
    for name, module in modules.items():
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in IMPORTED:
            del sys.modules[name]


class _Loader(Loader):
    def __init__(self, original: Loader) -> None:
        self._original = original

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        from transformers.utils import is_torchvision_available

        is_torchvision_available()  # it remembers its answer, which must be the true one
        with _stand_in():
            self._original.exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in NEEDY or importlib.util.find_spec("torchvision") is not None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def tolerate() -> None:
    """For this process. vLLM calls it in each of its own (entry point `vllm.general_plugins`)."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
