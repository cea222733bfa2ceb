"""verl's platform for machines without an accelerator, and the decision whether to use it."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import psutil
import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

from tailsieve_rl import versions
from tailsieve_rl.platforms import environment

NAME = "cpu"


def selected() -> bool:
    """Whether this job runs on the CPU platform.

    VERL_PLATFORM decides when set. Otherwise the question is what the *installation* can use, not what this process
    happens to see: a driver or a CPU-only Ray actor of a GPU cluster sees no device either, and all of a job's
    processes must answer alike.
    """
    named = os.environ.get("VERL_PLATFORM", "").strip().lower()
    if named:
        return named == NAME
    if torch.accelerator.current_accelerator(check_available=False) is None:
        return True  # this torch cannot use an accelerator, whatever the machine holds
    return "cpu" in (versions.installed("vllm") or "") and not _accelerator_present()


def active() -> bool:
    """Whether verl settled on the CPU platform in this process."""
    from verl.plugin.platform import get_platform

    return get_platform().device_name == NAME


def _accelerator_present() -> bool:
    """Whether any platform that verl knows finds its hardware on this machine (asking nvidia-smi and its like)."""
    if torch.accelerator.is_available():
        return True
    for name in PlatformRegistry.registered_names():
        platform = PlatformRegistry.get(name)
        if name != NAME and platform is not None and platform().is_platform_available(use_smi_check=True):
            return True
    return False


def register() -> None:
    """Make "cpu" a platform that VERL_PLATFORM can name."""
    PlatformRegistry.register(platform=NAME)(PlatformCPU)


def _resident_bytes(*_: object) -> int:
    return int(psutil.Process().memory_info().rss)


def _peak_resident_bytes(*_: object) -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _nothing(*_: object, **__: object) -> None:
    return None


class _CpuDevice(ModuleType):
    """What verl expects of `torch.<device>`; everything not named here is `torch.cpu`'s."""

    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: NAME)
    get_device_name = staticmethod(lambda *_: "CPU")
    set_device = synchronize = empty_cache = ipc_collect = staticmethod(_nothing)
    reset_peak_memory_stats = reset_accumulated_memory_stats = staticmethod(_nothing)
    set_per_process_memory_fraction = staticmethod(_nothing)
    memory_allocated = memory_reserved = staticmethod(_resident_bytes)
    max_memory_allocated = max_memory_reserved = staticmethod(_peak_resident_bytes)
    get_rng_state = staticmethod(lambda *_: torch.get_rng_state())
    set_rng_state = staticmethod(lambda state, *_: torch.set_rng_state(state))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.cpu, name)

    @staticmethod
    def mem_get_info(*_: object) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return memory.available, memory.total


class PlatformCPU(PlatformBase):
    """CPU as verl's device: gloo for collectives, shared memory for weights, a logical Ray slot per rank."""

    device_name = NAME
    vendor_name = NAME
    device_module = _CpuDevice("tailsieve_rl.cpu_device")

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        return selected()

    def current_device(self) -> str:
        return NAME  # verl calls tensor.to(current_device()), and an index would mean an accelerator

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        return None

    def synchronize(self, device_index: int | None = None) -> None:
        return None

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        return None

    def empty_cache(self) -> None:
        return None

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "TAILSIEVE_CPU_VISIBLE_SLOTS"

    @contextlib.contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        return None

    def profiler_stop(self) -> None:
        return None

    def ray_resource_name(self) -> str:
        # verl reads each worker's slot from Ray's accelerator ids, which exist only for Ray's own types: a logical
        # "GPU" (ray.init(num_gpus=R)) is a slot with nothing behind it.
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def rollout_env_vars(self) -> dict[str, str]:
        return environment.current()

    def cudart(self) -> None:
        return None
