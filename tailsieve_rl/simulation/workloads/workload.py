"""What a workload answers: how long each response of a group is."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Workload(Protocol):
    """Response lengths of an endless stream of prompts.

    The same (prompt, attempt, step) always has the same lengths, whatever else was asked for before: policies that are
    compared on one workload see common random numbers.

    Attributes:
        name: what results call it.
        responses: n, responses of a group.
        cap: the longest response, tokens.
    """

    @property
    def name(self) -> str: ...

    @property
    def responses(self) -> int: ...

    @property
    def cap(self) -> int: ...

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """Lengths of the responses of some groups.

        Args:
            prompts: (groups,) positions in the prompt stream, 0 or more.
            attempts: (groups,) 1 for a fresh group, 2 for its regeneration, and so on.
            step: policy update before which they are generated; 0 is the warm-up.

        Returns:
            (groups, n) tokens, 1 to `cap`.
        """
        ...
