"""The best static pair of a cell: what a controller that knew the workload from the start would hold.

A fixed pair's steps do not depend on those before them but for the regenerated groups, so all steps of all pairs are
computed at once (`steady`). They are the executor's, but for groups that finish at exactly the same time.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.tuning import largest_q, spread
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.steady import BulkRun, bulk_run, pools
from tailsieve_rl.simulation.workloads import Workload


def static_times(
    pairs: Iterable[Allocation], setup: Setup, workload: Workload, model: DecodeModel, count: int, converge: int = 1
) -> dict[Allocation, float]:
    """Mean step time of each fixed pair on one workload, seconds: what `cells.measure` gives for `Fixed`.

    Args:
        pairs: allocations; (0, 0) deals single responses out over all replicas.
        setup: N, n, R.
        workload: of one seed.
        model: of every replica.
        count: measured steps.
        converge: steps before them, 1 or more.

    Raises:
        ValueError: if the first step would be measured, whose tail set is the warm-up's.
    """
    if converge < 1:
        raise ValueError(f"converge = {converge}: a pair is at its steady state from the second step on")
    stream, tau = pools(workload, setup.groups, converge + count), model.table(setup.groups * setup.responses)
    runs: dict[int, BulkRun] = {}
    found = {}
    for at in pairs:
        if at.m not in runs:
            runs[at.m] = bulk_run(stream, setup.replicas - at.m, tau)
        run = runs[at.m]
        times = run.cutoff_s(0)[1:] if at.is_uniform else run.step_s(at.q, at.m, tau)
        found[at] = float(times[converge - 1 :].mean())
    return found


def static_step_s(
    at: Allocation, setup: Setup, workloads: Sequence[Workload], model: DecodeModel, count: int, converge: int = 1
) -> list[float]:
    """Mean step time of a fixed pair on each workload, seconds; arguments as of `static_times`."""
    return [static_times([at], setup, workload, model, count, converge)[at] for workload in workloads]


def static_grid(setup: Setup) -> list[Allocation]:
    """The static allocations that the best one is looked for in: (0, 0), every m, and q ever farther apart."""
    splits = spread(1, setup.replicas - 1, exact=16)
    return [UNIFORM, *(Allocation(q, m) for m in splits for q in spread(1, largest_q(setup), exact=10))]


def best_static(
    setup: Setup, workloads: Sequence[Workload], model: DecodeModel, count: int, converge: int = 1
) -> Allocation:
    """The pair with the least mean step time over all workloads, chosen in hindsight; arguments as of `static_times`.

    A choice on fewer steps than those that it is measured on would be luck: near the best pair the surface is flat.
    """
    grid = static_grid(setup)
    times = [static_times(grid, setup, workload, model, count, converge) for workload in workloads]
    return min(grid, key=lambda at: float(np.mean([found[at] for found in times])))
