"""Rollout engines behind verl's replica interface."""

from __future__ import annotations

from typing import Any

SERVER_MAX_CONCURRENCY = 16_384
"""Calls that a server takes on at once; an abort queues behind the generate calls beyond it.

verl allows 1000, which a step of 256 groups of 8 on two replicas exceeds. Ray's concurrency groups are no way out:
each runs in an event loop of its own, and vLLM's engine belongs to one. A call in flight costs the server's process
about 50 kB, and with 12,000 of them a control call takes 70 ms (Ray 2.60).
"""


def _vllm_replica() -> type[Any]:
    from tailsieve_rl.engines.vllm.replica import TailSieveVLLMReplica

    return TailSieveVLLMReplica


def _emulated_replica() -> type[Any]:
    from tailsieve_rl.engines.emulated.replica import EmulatedReplica

    return EmulatedReplica


def register() -> None:
    """Put our replicas into verl's registry; an engine itself is imported when its replica is asked for."""
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    from tailsieve_rl.engines.emulated.registration import register_adapter

    RolloutReplicaRegistry.register("vllm", _vllm_replica)
    RolloutReplicaRegistry.register("emulated", _emulated_replica)
    register_adapter()
