"""A cell's measurements, whatever they were taken on, and what results.json says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailsieve_rl.routing.policies.named import BASELINE, BEST_UNIFORM_DEPTH, uniform_depth
from tailsieve_rl.simulation.experiments.statistics import speedup


@dataclass(frozen=True, slots=True)
class Round:
    """One measured step.

    Attributes:
        step_s: generation time, seconds (emulated or virtual ones on those backends).
        q, m: the allocation it ran at.
        wasted_fraction: tokens thrown away, as a share of all.
        draft_depths: of the tail and of the bulk pool; None where the depth follows the batch size.
    """

    step_s: float
    q: int
    m: int
    wasted_fraction: float
    draft_depths: tuple[int | None, int | None] = (0, 0)


Rounds = Mapping[str, Sequence[Round]]
"""Policy -> its measured steps; of the baseline those of all its repeats."""


def judged(rounds: Rounds, virtual: Rounds | None = None) -> dict[str, dict[str, Any]]:
    """Policies as results have them (design.md, section 5).

    Args:
        rounds: what was measured. Intervals (95 %, Student's t) are over the rounds' ratios, paired by round.
        virtual: the same steps in virtual time, where that is another backend.
    """
    mean = {name: float(np.mean([r.step_s for r in found])) for name, found in rounds.items()}
    by_round = _by_round(rounds)
    best = min((name for name in rounds if uniform_depth(name) is not None), key=lambda name: mean[name], default=None)
    judged = {
        name: {
            "step_s": mean[name],
            "step_s_by_round": [r.step_s for r in found],
            "speedup": mean[BASELINE] / mean[name],
            "speedup_ci95": speedup(by_round[BASELINE], by_round[name]).interval,
            **({} if best is None else _over(best, by_round, name)),
            "speedup_over_least_loaded": mean["least_loaded"] / mean[name] if "least_loaded" in mean else None,
            "q": float(np.median([r.q for r in found])),
            "m": float(np.median([r.m for r in found])),
            "wasted_fraction": float(np.mean([r.wasted_fraction for r in found])),
            "draft_depth_tail": _median(r.draft_depths[0] for r in found),
            "draft_depth_bulk": _median(r.draft_depths[1] for r in found),
            **({} if virtual is None else _beside(mean, name, virtual)),
        }
        for name, found in rounds.items()
    }
    return judged if best is None else {**judged, BEST_UNIFORM_DEPTH: judged[best]}


def _by_round(rounds: Rounds) -> dict[str, Sequence[float]]:
    """Seconds of each round, the baseline's repeats averaged: what is paired."""
    count = min(len(found) for found in rounds.values())
    return {name: np.reshape([r.step_s for r in found], (-1, count)).mean(axis=0) for name, found in rounds.items()}


def _over(best: str, by_round: Mapping[str, Sequence[float]], name: str) -> dict[str, Any]:
    """How much faster than uniform routing at the one depth that turned out best, with its interval."""
    found = speedup(by_round[best], by_round[name])
    return {"speedup_over_best_depth": found.value, "speedup_over_best_depth_ci95": found.interval}


def _median(depths: Iterable[int | None]) -> float | None:
    known = [depth for depth in depths if depth is not None]
    return float(np.median(known)) if known else None


def _beside(mean: Mapping[str, float], name: str, virtual: Rounds) -> dict[str, float]:
    """The virtual times, and how far the measured ones are from them."""
    times = {policy: float(np.mean([r.step_s for r in found])) for policy, found in virtual.items()}
    return {
        "virtual_step_s": times[name],
        "virtual_speedup": times[BASELINE] / times[name],
        "step_error": mean[name] / times[name] - 1.0,
        "speedup_error": (mean[BASELINE] / mean[name]) / (times[BASELINE] / times[name]) - 1.0,
    }
