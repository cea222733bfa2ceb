"""Lengths that change with the step: a workload, scaled and stretched by a schedule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.simulation.workloads.workload import Workload

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drift:
    """What happens to lengths at a step.

    Attributes:
        stretch: of a length above the pivot, what is above it is multiplied by this (paper A.5).
        scale: then every length is multiplied by this.
    """

    scale: float = 1.0
    stretch: float = 1.0

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.stretch <= 0:
            raise ValueError(f"{self}: scale and stretch must be above 0")


Schedule = Callable[[int], Drift]
"""Step -> drift."""


@dataclass(frozen=True)
class Drifting:
    """A `Workload` whose lengths follow a schedule.

    A response that ran to the cap still does: how long it would have become is not known.

    Attributes:
        workload: what is changed.
        schedule: the drift of each step.
        pivot: tokens above which lengths are stretched.
        label: put behind the workload's name.
    """

    workload: Workload
    schedule: Schedule
    pivot: float
    label: str

    @property
    def name(self) -> str:
        """Name of the workload and of the drift."""
        return f"{self.workload.name}_{self.label}"

    @property
    def responses(self) -> int:
        """n, responses of a group."""
        return self.workload.responses

    @property
    def cap(self) -> int:
        """The longest response, tokens."""
        return self.workload.cap

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """(groups, n) tokens; see `Workload.lengths`."""
        given = self.workload.lengths(prompts, attempts, step)
        drift = self.schedule(step)
        stretched = given + (drift.stretch - 1.0) * np.maximum(given - self.pivot, 0.0)
        cut = given >= self.workload.cap
        return np.where(cut, self.cap, np.clip(np.rint(drift.scale * stretched), 1, self.cap)).astype(np.int64)


def constant(drift: Drift) -> Schedule:
    """The same at every step."""
    return lambda step: drift


def slowly(first: Drift, last: Drift, steps: int) -> Schedule:
    """From one drift to another along half a cosine of so many steps, and there it stays."""
    _positive(steps)

    def schedule(step: int) -> Drift:
        share = (1 - cos(pi * min(max(step, 0), steps) / steps)) / 2
        return Drift(
            first.scale + share * (last.scale - first.scale), first.stretch + share * (last.stretch - first.stretch)
        )

    return schedule


def in_turn(drifts: Sequence[Drift], steps: int) -> Schedule:
    """Each drift for so many steps, abruptly, and again from the first."""
    _positive(steps)
    return lambda step: drifts[(step // steps) % len(drifts)]


def _positive(steps: int) -> None:
    if steps < 1:
        raise ValueError(f"steps = {steps} must be 1 or more")
