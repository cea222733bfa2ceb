"""Steps at fixed draft depths and a stable allocation, every pair of depths at once (`steady`)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth, DraftDepths
from tailsieve_rl.routing.makespan import pool_end
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.steady import bulk_run, pools
from tailsieve_rl.simulation.workloads import Workload

Floats = NDArray[np.float64]


class Depths(NamedTuple):
    """Draft tokens of the tail and of the bulk pool; the same under uniform routing."""

    tail: int
    bulk: int


def depth_times(
    at: Allocation, setup: Setup, workload: Workload, model: DecodeModel, depths: Iterable[int], count: int
) -> dict[Depths, Floats]:
    """Step times of each pair of depths, (count,) seconds.

    Args:
        at: the allocation of every step; (0, 0) deals single responses out over all replicas.
        setup: N, n, R.
        workload: of one seed.
        model: of every replica, with points for the depths.
        depths: of either pool.
        count: steps.
    """
    chosen, most = tuple(depths), setup.groups * setup.responses
    tau = {depth: model.table(most, depth) for depth in chosen}
    stream = pools(workload, setup.groups, count + 1)
    found = {}
    for bulk in chosen:
        run = bulk_run(stream, setup.replicas - at.m, tau[bulk])
        if at.is_uniform:
            found[Depths(bulk, bulk)] = run.cutoff_s(0)[1:]
            continue
        for tail in chosen:
            found[Depths(tail, bulk)] = run.step_s(at.q, at.m, tau[tail])
    return found


def uniform_times(setup: Setup, workload: Workload, model: DecodeModel, depth: Depth, count: int) -> Floats:
    """(count,) seconds of steps 2, 3, ... under uniform routing of whole groups, at a depth or a schedule of depths."""
    stream = pools(workload, setup.groups, count + 1).first[1:]
    return pool_end(stream, setup.replicas, model.table(setup.groups * setup.responses, depth), by_group=True)


def best_schedule(model: DecodeModel, depths: Sequence[int], most: int) -> tuple[int, ...]:
    """The fastest depth for each number of running requests, index b: an ideal schedule by batch size."""
    taus = np.array([model.table(most, depth) for depth in depths])
    return tuple(int(depths[place]) for place in taus.argmin(axis=0))


def as_decided(depths: Depths) -> DraftDepths:
    """As a depth controller decides them."""
    return DraftDepths(tail=depths.tail, bulk=depths.bulk, uniform=depths.bulk)
