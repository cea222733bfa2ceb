"""What TailSieve would gain on measured lengths: the same prompt streams under three routings, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.control.joint import Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import LeastLoaded, Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.simulation.experiments.cells import Measured, measure
from tailsieve_rl.simulation.experiments.statistics import Mean, speedup
from tailsieve_rl.simulation.experiments.tables import CONVERGE
from tailsieve_rl.simulation.length_table import LengthTable
from tailsieve_rl.simulation.workloads.traces import SKY_T1_SPREAD, TraceWorkload

Ints = NDArray[np.int64]

MEASURED = 24
"""Steps after convergence that a repeat measures: its own luck is then some 2 %."""

ENOUGH = 1.01
"""Speedup that the lower end of an interval must exceed for TailSieve to pay."""

FULL_SHARE = 0.5
"""Share of the fullest checkpoint's prompts that a checkpoint must have to be used: an epoch may end half way."""


@dataclass(frozen=True)
class Source:
    """The lengths that repeats draw from: the checkpoints of a table that have enough prompts.

    Attributes:
        table: all lengths.
    """

    table: LengthTable

    @cached_property
    def cells(self) -> list[list[Ints]]:
        """Rows of each prompt, at each checkpoint that is used."""
        table = self.table
        order = np.lexsort((table.prompt, table.checkpoint))
        at = np.column_stack((table.checkpoint, table.prompt))[order]
        cells: list[list[Ints]] = [[] for _ in table.checkpoints]
        for rows in np.split(order, np.flatnonzero((np.diff(at, axis=0) != 0).any(axis=1)) + 1):
            cells[table.checkpoint[rows[0]]].append(rows)
        return [prompts for prompts in cells if len(prompts) >= FULL_SHARE * max(map(len, cells))]

    @property
    def prompts(self) -> int:
        """Prompts at the fullest checkpoint."""
        return max(map(len, self.cells))

    @property
    def responses(self) -> int:
        """The number of responses that most prompts have at a checkpoint; the larger one of two as frequent."""
        counts = np.bincount([len(rows) for prompts in self.cells for rows in prompts])
        return int(len(counts) - 1 - counts[::-1].argmax())

    @property
    def spread(self) -> float:
        """0, or the spread of a prompt's responses that has to be assumed, since no prompt has a second one."""
        return SKY_T1_SPREAD if all(len(rows) == 1 for prompts in self.cells for rows in prompts) else 0.0

    def workload(self, seed: int, responses: int) -> TraceWorkload:
        """An endless stream of the prompts of one checkpoint, which are themselves drawn anew (a bootstrap)."""
        rng = np.random.default_rng(seed)
        cells = self.cells[rng.integers(len(self.cells))]
        drawn = [cells[i] for i in rng.integers(len(cells), size=len(cells))]
        prompt = np.repeat(np.arange(len(drawn)), [len(rows) for rows in drawn])
        tokens = self.table.tokens[np.concatenate(drawn)]
        table = LengthTable(prompt, np.zeros_like(prompt), tokens, ("",), self.table.source)
        return TraceWorkload("measured", seed, table, responses, spread=self.spread)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What `predict` finds. Means over repeats; intervals are of one run, see `one_run`.

    Attributes:
        uniform_s, least_loaded_s, tailsieve_s: mean step time of each routing, seconds.
        over_uniform, over_least_loaded: TailSieve's speedup.
        q, m: groups in the tail pool, and its replicas.
        wasted: aborted tokens as a share of all.
    """

    uniform_s: float
    least_loaded_s: float
    tailsieve_s: float
    over_uniform: Mean
    over_least_loaded: Mean
    q: float
    m: float
    wasted: float

    @property
    def pays(self) -> bool:
        """Whether it is faster than both by enough, at the lower ends."""
        return min(self.over_uniform.low, self.over_least_loaded.low) > ENOUGH


def predict(
    source: Source, model: DecodeModel, setup: Setup, seeds: range, progress: Callable[[str], None] = lambda line: None
) -> Prediction:
    """Compare TailSieve as shipped with uniform groups and with verl's own rule.

    Args:
        source: of the lengths.
        model: of every replica.
        setup: N, n, R.
        seeds: of the repeats, two or more. Each draws which prompts there are, and a stream of them.
        progress: takes a line for the user.
    """
    policies = (Uniform(), LeastLoaded(), TwoPool(Joint(default_allocation(setup), model)))
    runs: list[list[Measured]] = []
    for done, seed in enumerate(seeds, 1):
        stream = source.workload(seed, setup.responses)
        runs.append([measure(policy, setup, stream, model, CONVERGE, MEASURED) for policy in policies])
        progress(f"repeat {done} of {len(seeds)}")
    uniform_s, least_loaded_s, tailsieve_s = np.array([[run.step_s for run in repeat] for repeat in runs]).T
    routed = [repeat[-1] for repeat in runs]
    return Prediction(
        uniform_s=float(uniform_s.mean()),
        least_loaded_s=float(least_loaded_s.mean()),
        tailsieve_s=float(tailsieve_s.mean()),
        over_uniform=one_run(speedup(uniform_s, tailsieve_s), len(seeds)),
        over_least_loaded=one_run(speedup(least_loaded_s, tailsieve_s), len(seeds)),
        q=float(np.mean([run.allocation.q for run in routed])),
        m=float(np.mean([run.allocation.m for run in routed])),
        wasted=float(np.mean([run.wasted_fraction for run in routed])),
    )


def one_run(mean: Mean, repeats: int) -> Mean:
    """The interval of a single repeat instead of the repeats' mean.

    Repeats draw from one file. More of them make their mean exact, but not the file: how much the gain would differ
    with other prompts in it is seen in how much repeats differ.
    """
    reach = (mean.high - mean.value) * sqrt(repeats)
    return Mean(mean.value, mean.value - reach, mean.value + reach)
