"""Rollout engines behind verl's replica interface."""

from __future__ import annotations

from typing import Any


def _vllm_replica() -> type[Any]:
    from tailsieve_rl.engines.vllm.replica import TailSieveVLLMReplica

    return TailSieveVLLMReplica


def register() -> None:
    """Put our replicas into verl's registry; an engine itself is imported when its replica is asked for."""
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    RolloutReplicaRegistry.register("vllm", _vllm_replica)
