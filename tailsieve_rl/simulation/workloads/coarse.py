"""A workload in coarser tokens: what a job of short responses can carry."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.simulation.workloads.workload import Workload

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coarse:
    """A `Workload` with lengths in a job's tokens, one at least, or in what the job's tokens take the time of.

    Attributes:
        workload: the fine one.
        divisor: its tokens that a token of the job stands for.
        stretch: tokens that a token of the job takes the time of: 1 for the job's own lengths.
    """

    workload: Workload
    divisor: int
    stretch: int = 1

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def responses(self) -> int:
        return self.workload.responses

    @property
    def cap(self) -> int:
        return max(1, round(self.workload.cap / self.divisor)) * self.stretch

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """(groups, n) tokens, multiples of `stretch`; see `Workload.lengths`."""
        lengths = self.workload.lengths(prompts, attempts, step)
        return np.maximum(1, np.rint(lengths / self.divisor)).astype(np.int64) * self.stretch
