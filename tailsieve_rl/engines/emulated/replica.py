"""verl's view of an emulated replica, registered under the rollout name "emulated"."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from typing import Any

import ray
from omegaconf import DictConfig
from verl.single_controller.ray import RayWorkerGroup
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutMode, RolloutReplica

from tailsieve_rl.engines import SERVER_MAX_CONCURRENCY
from tailsieve_rl.engines.emulated.server import EmulatedServer
from tailsieve_rl.engines.emulated.settings import emulated_settings
from tailsieve_rl.engines.emulated.speed import Speed


def _actor_name(rank: int) -> str:
    return f"emulated_server_{rank}"


class EmulatedReplica(RolloutReplica):
    """One server actor, with no device behind it."""

    async def launch_servers(self) -> None:
        settings = emulated_settings(self.config.engine_kwargs)
        capacity = self.config.max_num_seqs
        speed = Speed.of(settings.decode_model(), capacity)
        options = {"name": _actor_name(self.replica_rank), "max_concurrency": SERVER_MAX_CONCURRENCY, "num_cpus": 0}
        handle = (
            ray.remote(EmulatedServer)
            .options(**options)
            .remote(self.replica_rank, speed, capacity, settings.time_scale, settings.stretch)
        )
        self.servers = [handle]
        self._server_handle, self._server_address = handle, f"emulated-{self.replica_rank}"

    async def init_standalone(self) -> None:
        """No resource pool, no workers: there are no weights to receive."""
        self.rollout_mode = RolloutMode.STANDALONE
        await self.launch_servers()

    async def init_hybrid(self, worker_group: RayWorkerGroup) -> None:
        """The ranks that train stand beside the emulated replicas, however many these are."""
        self.rollout_mode = RolloutMode.HYBRID
        await self.launch_servers()

    @property
    def max_concurrency(self) -> int:
        return SERVER_MAX_CONCURRENCY


def launch_replicas(config: DictConfig, ranks: Iterable[int]) -> list[EmulatedReplica]:
    """Start replicas beside those that verl started.

    Args:
        config: the job's.
        ranks: their numbers.
    """
    rollout, model = config.actor_rollout_ref.rollout, config.actor_rollout_ref.model
    replicas = [EmulatedReplica(replica_rank=rank, config=rollout, model_config=model) for rank in ranks]
    for replica in replicas:
        asyncio.run(replica.init_standalone())
    return replicas


class EmulatedAdapter(BaseRollout):
    """A training rank's side: takes the weights, and has rank 0 tell every replica their version."""

    async def resume(self, tags: list[str]) -> None:
        """There is no memory to take."""

    async def release(self) -> None:
        """There is no memory to free."""

    async def update_weights(
        self, weights: Generator[tuple[str, Any], None, None], global_steps: int | None = None, **_: Any
    ) -> None:
        """Draw all weights, as every rank must for the gathering of shards, and forget them."""
        for _name, _tensor in weights:
            pass
        if global_steps is not None and self.device_mesh.get_rank() == 0:
            await asyncio.gather(*(server.set_global_steps.remote(global_steps) for server in self._servers()))

    def _servers(self) -> list[Any]:
        """Every replica's actor: as many as the settings say, or one a rank in a trainer that knows no more of them."""
        found = []
        for rank in range(emulated_settings(self.config.engine_kwargs).replicas):
            try:
                found.append(ray.get_actor(_actor_name(rank)))
            except ValueError:
                break
        return found
