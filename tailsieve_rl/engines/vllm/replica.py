"""verl's vLLM replica with our server behind it."""

from __future__ import annotations

from typing import Any

import ray
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMReplica

from tailsieve_rl.engines.vllm.server import TailSieveVLLMServer

SERVER_MAX_CONCURRENCY = 16_384
"""Calls that a server takes on at once; an abort queues behind the generate calls beyond it.

verl allows 1000, which a step of 256 groups of 8 on two replicas exceeds. Ray's concurrency groups are no way out:
each runs in an event loop of its own, and vLLM's engine belongs to one. A waiting call costs Ray the same on either
side of the limit.
"""


class TailSieveVLLMReplica(vLLMReplica):
    """Registered under the rollout name "vllm"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server_class = ray.remote(TailSieveVLLMServer)

    @property
    def max_concurrency(self) -> int:
        return max(super().max_concurrency, SERVER_MAX_CONCURRENCY)
