"""How fast an emulated replica decodes at each draft depth, and how many drafts it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailsieve_rl.routing.draft import Acceptance, Depth, depth_at

if TYPE_CHECKING:  # NumPy, which a server does without
    from tailsieve_rl.routing.decode_model import DecodeModel


@dataclass(frozen=True, slots=True)
class Speed:
    """A decode profile as an actor takes it along.

    Attributes:
        tau: draft depth -> seconds per token by running requests, 0 to the capacity.
        acceptance: of drafts; None: the profile has no drafts.
    """

    tau: Mapping[int, tuple[float, ...]]
    acceptance: Acceptance | None = None

    @classmethod
    def of(cls, model: DecodeModel, capacity: int) -> Speed:
        """The tables of a decode model, for up to so many requests."""
        return cls({depth: tuple(model.table(capacity, depth).tolist()) for depth in model.depths}, model.acceptance)

    def table(self, depth: Depth) -> tuple[float, ...]:
        """Seconds per token by running requests, at a depth or by a schedule.

        Raises:
            ValueError: if the profile does not have the depth.
        """
        most = len(next(iter(self.tau.values())))
        unknown = {depth_at(depth, b) for b in range(most)} - set(self.tau)
        if unknown:
            raise ValueError(f"draft depth {min(unknown)} is not in the emulated profile, which has {sorted(self.tau)}")
        return tuple(self.tau[depth_at(depth, b)][b] for b in range(most))
