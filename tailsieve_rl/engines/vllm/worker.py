"""vLLM worker extension for CPU engines."""

from __future__ import annotations

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightReceiver
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from tailsieve_rl.engines.vllm.cpu_drafts import DraftExtension


class CpuWorkerExtension(DraftExtension, vLLMColocateWorkerExtension):
    """Takes weight updates through vLLM's layerwise reload.

    A CPU engine packs its linear weights and drops the originals, so verl's plain `model.load_weights` fails half-way
    and leaves the engine with mixed weights. `reload_weights` unpacks, loads and packs again, layer by layer.
    """

    def update_weights_from_ipc(
        self, peft_config: dict[str, Any] | None = None, base_sync_done: bool = False, use_shm: bool = False
    ) -> None:
        if peft_config and base_sync_done:  # a LoRA adapter touches no packed weight
            super().update_weights_from_ipc(peft_config, base_sync_done, use_shm)
            return
        received: list[tuple[str, torch.Tensor]] = []

        def keep(bucket: list[tuple[str, torch.Tensor]], is_last: bool) -> None:
            received.extend((name, tensor.clone()) for name, tensor in bucket)  # the bucket's memory is reused

        receiver = BucketedWeightReceiver(self._get_zmq_handle(), torch.device("cpu"), use_shm=use_shm)
        receiver.receive_weights(on_bucket_received=keep)
        self.reload(received)

    def reload(self, weights: list[tuple[str, torch.Tensor]]) -> None:
        """Load all weights of the target, by their names in a checkpoint.

        A drafter keeps its own, whatever is among these: under FSDP there are none for it, since transformers and verl
        leave them out. The embeddings and output weights that it shares with the target are new for both.
        """
        self.model_runner.reload_weights(weights_iterator=iter(weights), is_checkpoint_format=True)
