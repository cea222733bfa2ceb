"""verl's FSDP2 training engines for device "cpu"; verl registers them for CUDA and NPU only. FSDP1 needs a GPU."""

from __future__ import annotations

from typing import Any

from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead


class _NoPinnedOffload:
    """verl offloads a forward-only engine (the reference policy) to pinned memory, which needs an accelerator.

    Its parameters are in host memory as it is.
    """

    engine_config: Any

    def _build_fsdp_module(self, module: Any) -> Any:
        kept = self.engine_config.forward_only
        self.engine_config.forward_only = False
        try:
            return super()._build_fsdp_module(module)  # type: ignore[misc]
        finally:
            self.engine_config.forward_only = kept


class CpuFSDP2EngineWithLMHead(_NoPinnedOffload, FSDPEngineWithLMHead):
    """Language model: actor and reference policy."""


class CpuFSDP2EngineWithValueHead(_NoPinnedOffload, FSDPEngineWithValueHead):
    """Value model: critic."""


def register() -> None:
    """Offer both engines to verl as strategy "fsdp2" of device "cpu"."""
    for model_type, engine in (
        ("language_model", CpuFSDP2EngineWithLMHead),
        ("value_model", CpuFSDP2EngineWithValueHead),
    ):
        EngineRegistry.register(model_type=model_type, backend=["fsdp2"], device="cpu")(engine)
