"""Steps at a stable allocation, all of them at once: for experiments that ask about thousands of (q, m).

Step t + 1 generates the last q groups of pool t again and a fresh pool t + 1: with the same (q, m) throughout, its time
is the slower of two things that are computed pool by pool. It is what the executor makes of a fixed allocation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.makespan import pool_end, pool_times, round_robin
from tailsieve_rl.routing.proxy import TailProxy, tail_proxy
from tailsieve_rl.simulation.workloads import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pools:
    """Fresh pools of a prompt stream, (steps, F, n) tokens.

    Attributes:
        first: generations in the pool's own step.
        again: in the step after it, of the same prompts.
    """

    first: Ints
    again: Ints


def pools(workload: Workload, fresh: int, steps: int) -> Pools:
    """The pools of steps 1, 2, ... of F groups each."""
    first, again = [], []
    for step in range(1, steps + 1):
        prompts = np.arange((step - 1) * fresh, step * fresh)
        first.append(workload.lengths(prompts, np.full(fresh, 1), step))
        again.append(workload.lengths(prompts, np.full(fresh, 2), step + 1))
    return Pools(np.stack(first), np.stack(again))


@dataclass(frozen=True, slots=True)
class BulkRun:
    """All fresh pools on the bulk pool of one split.

    Attributes:
        pools: what runs.
        times: (steps, F) completion time of each group, ascending, seconds.
        order: (steps, F) the groups in order of completion.
    """

    pools: Pools
    times: Floats
    order: Ints

    def cutoff_s(self, q: int) -> Floats:
        """(steps,) when all but q groups have finished."""
        return self.times[:, -q - 1]

    def left(self, q: int) -> Ints:
        """(steps, q) the groups that are left over, in the order of the prompt stream."""
        return np.sort(self.order[:, self.order.shape[1] - q :], axis=-1)

    def tail_s(self, q: int, m: int, tau: Floats) -> Floats:
        """(steps,) when the groups left over are through in the next step, on m replicas."""
        lengths = np.take_along_axis(self.pools.again, self.left(q)[..., None], axis=1)
        return pool_end(lengths, m, tau)

    def step_s(self, q: int, m: int, tau: Floats) -> Floats:
        """(steps - 1,) makespans of the second step and those after it."""
        return np.maximum(self.tail_s(q, m, tau)[:-1], self.cutoff_s(q)[1:])

    def proxy(self, q: int, m: int, replicas: int, tau: Floats, steps: int) -> TailProxy:
        """The tail-side proxy of the first steps: the regenerated groups in the tail pool, or among all others."""
        fresh, n = self.pools.first.shape[1:]
        homes = round_robin(fresh, n, replicas)
        parts = []
        for first, again, left in zip(self.pools.first, self.pools.again, self.left(q)[:steps], strict=False):
            others = np.setdiff1d(np.arange(fresh), left)
            base = np.concatenate([again[left].ravel(), first[others].ravel()])
            home = np.concatenate([homes[left].ravel(), homes[others].ravel()])
            parts.append(tail_proxy(base, home, again[left].ravel(), round_robin(q, n, m).ravel(), tau))
        return TailProxy(
            np.array([part.advantage_s for part in parts]),
            np.array([part.penalty_s for part in parts]),
            np.array([part.work for part in parts]),
        )


def bulk_run(of: Pools, replicas: int, tau: Floats, by_group: bool = False) -> BulkRun:
    """Run the fresh pools on so many replicas, their responses dealt out in turn (or whole groups)."""
    times = pool_times(of.first, replicas, tau, by_group)
    order = np.argsort(times, axis=-1, kind="stable")
    return BulkRun(of, np.take_along_axis(times, order, axis=-1), order)
