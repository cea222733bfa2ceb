"""verl's worker extension for engines that draft, where there is an accelerator."""

from __future__ import annotations

from typing import Any

from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension


class DraftingWorkerExtension(vLLMColocateWorkerExtension):
    """Finds an MTP drafter where vLLM's second model runner has it, too, so that trained weights reach it.

    verl 0.9.1 looks for `model_runner.drafter`, the name in the first. What an update does not bring (under FSDP, all
    of `mtp.*`: verl trains those with Megatron only) stays as it was loaded.
    """

    model_runner: Any

    def _get_drafter_model(self) -> Any:
        found = super()._get_drafter_model()
        return found if found is not None else getattr(getattr(self.model_runner, "speculator", None), "model", None)
