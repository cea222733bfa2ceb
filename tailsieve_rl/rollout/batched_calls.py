"""A process's calls of the coordinator, those of one moment in one message: a message costs more than what it asks."""

import asyncio
from collections.abc import Callable
from typing import Any


class BatchedCalls:
    """Acquires and releases of the responses that run in this process's event loop.

    Args:
        coordinator: handle of the Coordinator actor.
    """

    def __init__(self, coordinator: Any):
        self._coordinator = coordinator
        self._acquires: list[tuple[tuple[Any, ...], asyncio.Future[str | None]]] = []
        self._releases: list[tuple[Any, ...]] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def acquire(self, *call: Any) -> str | None:
        """`Coordinator.acquire`."""
        loop = asyncio.get_running_loop()
        replica: asyncio.Future[str | None] = loop.create_future()
        self._when_first(self._acquires, self._start_sending)
        self._acquires.append((call, replica))
        return await replica

    def release(self, *call: Any) -> None:
        """`Coordinator.release`; nothing is waited for."""
        self._when_first(self._releases, self._send_releases)
        self._releases.append(call)

    def _when_first(self, waiting: list[Any], send: Callable[[], None]) -> None:
        """Send when everything that can run now has run."""
        if not waiting:
            asyncio.get_running_loop().call_soon(send)

    def _start_sending(self) -> None:
        batch, self._acquires = self._acquires, []
        task = asyncio.get_running_loop().create_task(self._send_acquires(batch))
        self._sending.add(task)  # a loop keeps no reference to its tasks
        task.add_done_callback(self._sending.discard)

    async def _send_acquires(self, batch: list[tuple[tuple[Any, ...], "asyncio.Future[str | None]"]]) -> None:
        try:
            replicas = await self._coordinator.acquire_many.remote([call for call, _ in batch])
        except Exception as error:
            for _, waiting in batch:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        for (_, waiting), replica in zip(batch, replicas, strict=True):
            if not waiting.done():  # its response was cancelled
                waiting.set_result(replica)

    def _send_releases(self) -> None:
        batch, self._releases = self._releases, []
        self._coordinator.release_many.remote(batch)
