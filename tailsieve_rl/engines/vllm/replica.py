"""verl's vLLM replica with our server behind it."""

from __future__ import annotations

from typing import Any

import ray
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica

from tailsieve_rl.engines import SERVER_MAX_CONCURRENCY
from tailsieve_rl.engines.vllm.server import TailSieveVLLMServer


class TailSieveVLLMReplica(vLLMReplica):
    """Registered under the rollout name "vllm"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(TailSieveVLLMServer)

    @property
    def max_concurrency(self) -> int:
        return max(super().max_concurrency, SERVER_MAX_CONCURRENCY)
