"""Steps at fixed draft depths and stable allocations, many of both at once (`steady`)."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth
from tailsieve_rl.routing.makespan import pool_end
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.steady import BulkRun, bulk_run, pools
from tailsieve_rl.simulation.workloads import Workload

Floats = NDArray[np.float64]


class Depths(NamedTuple):
    """Draft tokens of the tail and of the bulk pool; the same under uniform routing."""

    tail: int
    bulk: int


def depth_times(
    allocations: Iterable[Allocation],
    pairs: Iterable[Depths],
    setup: Setup,
    workload: Workload,
    model: DecodeModel,
    count: int,
) -> dict[tuple[Allocation, Depths], Floats]:
    """Step times at each allocation and pair of depths, (count,) seconds.

    Args:
        allocations: of every step; (0, 0) deals single responses out over all replicas, at equal depths only.
        pairs: of depths.
        setup: N, n, R.
        workload: of one seed.
        model: of every replica, with points for the depths.
        count: steps, from the second on.
    """
    chosen, most = tuple(pairs), setup.groups * setup.responses
    tau = {depth: model.table(most, depth) for depth in {depth for pair in chosen for depth in pair}}
    stream = pools(workload, setup.groups, count + 1)
    runs: dict[tuple[int, int], BulkRun] = {}
    found = {}
    for at in allocations:
        for pair in chosen:
            if at.is_uniform and pair.tail != pair.bulk:
                continue
            key = (at.m, pair.bulk)
            if key not in runs:
                runs[key] = bulk_run(stream, setup.replicas - at.m, tau[pair.bulk])
            run = runs[key]
            found[at, pair] = run.cutoff_s(0)[1:] if at.is_uniform else run.step_s(at.q, at.m, tau[pair.tail])
    return found


def uniform_times(setup: Setup, workload: Workload, model: DecodeModel, depth: Depth, count: int) -> Floats:
    """(count,) seconds of the steps from the second on under uniform routing of whole groups.

    Args:
        setup: N, n, R.
        workload: of one seed.
        model: of every replica.
        depth: draft tokens, or a schedule of them by batch size.
        count: steps.
    """
    stream = pools(workload, setup.groups, count + 1).first[1:]
    return pool_end(stream, setup.replicas, model.table(setup.groups * setup.responses, depth), by_group=True)
