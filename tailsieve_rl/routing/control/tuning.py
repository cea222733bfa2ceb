"""Settings that both controllers have, each with its reason, and what they have in common."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.evidence import Evidence
from tailsieve_rl.routing.control.forecast import Forecast, PoolTaus, draw
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.room import needed_room
from tailsieve_rl.routing.setup import Setup

SETTLE_AFTER_INCREASE = 1
SETTLE_AFTER_DECREASE = 2
"""Steps for which q is held after a change of it (paper C.1)."""

MOST_DRAWN = 4096
"""Groups of all pools that a forecast draws: large pools are alike, and a decision should take less than a second."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a controller moves.

    Attributes:
        max_change: largest change of q in one decision, groups; None: N / 32, at least 1. A change of D defers D more
            (or fewer) slow groups than the batch receives: it shifts the batch's mean length by some 4 % per group of
            64, so it is kept small.
        switch_threshold: predicted saving, as a share of the makespan, that a change of m or a passage to or from
            (0, 0) must promise. Forecasts compare allocations on the same draws: their differences repeat within one
            per cent.
        history_steps: steps whose groups the forecast draws from: enough that the few groups of the tail are seen
            tens of times, few enough to follow a policy that changes.
        samples: pools that a forecast draws. More cost time in proportion and sharpen it by their root.
        by_group: within a pool whole groups are dealt out, not single responses.
        seed: of the draws.
    """

    max_change: int | None = None
    switch_threshold: float = 0.01
    history_steps: int = 10
    samples: int = 16
    by_group: bool = False
    seed: int = 0

    def change_bound(self, setup: Setup) -> int:
        """max_change, in groups."""
        return self.max_change if self.max_change is not None else max(1, setup.groups // 32)

    def forecast(self, evidence: Evidence, setup: Setup, step: int, depths: DraftDepths) -> Forecast | None:
        """The forecast after a step; None before a decode model and groups have been seen.

        Args:
            evidence: what was seen.
            setup: N, n, R.
            step: steps seen, which seeds the draws.
            depths: that the pools draft at.
        """
        if evidence.model is None or not len(evidence.lengths):
            return None
        rng = np.random.default_rng((self.seed, step))
        samples = max(1, min(self.samples, MOST_DRAWN // setup.groups))
        draws = draw(evidence.lengths, setup.groups, samples, rng)
        most = setup.groups * setup.responses
        tau = {depth: evidence.tau(most, depth) for depth in {depths.tail, depths.bulk, depths.uniform}}
        pools = PoolTaus(tau[depths.tail], tau[depths.bulk], tau[depths.uniform])
        return Forecast(draws, setup.replicas, pools, self.by_group)

    def has_room(self, setup: Setup, allocation: Allocation) -> bool:
        """Whether every replica can decode all its requests at once: there, on the way, and when it is entered."""
        if setup.capacity is None:
            return True
        cases = ((allocation, setup.groups + self.change_bound(setup)), (UNIFORM, setup.groups + allocation.q))
        return all(
            needed_room(at, fresh, setup.responses, setup.replicas, self.by_group).largest <= setup.capacity
            for at, fresh in cases
        )


def largest_q(setup: Setup) -> int:
    """N / 2 (the largest start of paper 4.4), and always fewer than N."""
    return max(1, min(setup.groups // 2, setup.groups - 1))


def spread(least: int, most: int, always: Iterable[int] = (), exact: int = 8, ratio: float = 1.25) -> tuple[int, ...]:
    """Whole numbers from least to most: every one up to `exact`, then each larger than the last by `ratio`."""
    chosen = set(range(least, min(exact, most) + 1)) | {most}
    at = float(max(exact, least))
    while at < most:
        chosen.add(round(at))
        at *= ratio
    return tuple(sorted(chosen | {n for n in always if least <= n <= most}))
