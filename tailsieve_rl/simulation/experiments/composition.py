"""By how much a batch differs from the population of its policy (paper Appendix E), step by step.

A batch is the fresh pool, less the groups left over from it, plus the tail set generated again. The pool's own
deviation is the luck of the draw, which uniform routing has as well, and is left out: what is measured is

    sum over tail f(second generation) - sum over candidates f(first generation) + (F - N) n E f,

a share of the batch, whose expectation is exactly that of the batch's deviation. f is a response's length relative to
the population's mean, and whether it lies in each of the intervals between some quantiles of the population.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.simulation.workloads import Workload

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Ends of the length intervals, as shares of the population."""

AS_RUN = (1, 2)
"""The generations that decided and were trained on: the selector sees the lengths that it selects."""

BY_PROMPT = (1001, 1002)
"""Generations that decided nothing. Measured by them, the selector depends on the prompt alone, as Appendix E has it
in its ideal case: with the prompts that the cutoff chose, and lengths that are independent of the choice."""

_FIRST_POSITION = 1 << 41
_SAMPLE = 16_384


@dataclass(frozen=True, slots=True)
class Population:
    """Lengths of all prompts under one policy.

    Attributes:
        mean: tokens.
        edges: inner ends of the intervals, tokens.
        shares: of the responses in each interval.
    """

    mean: float
    edges: Floats
    shares: Floats

    @property
    def expected(self) -> Floats:
        """Expectation of `features`."""
        return np.concatenate([[1.0], self.shares])

    def features(self, lengths: Ints) -> Floats:
        """(..., groups, 1 + intervals): mean over the responses of (..., groups, n) tokens."""
        interval = np.searchsorted(self.edges, lengths, side="right")
        inside = [(interval == i).mean(axis=-1) for i in range(len(self.edges) + 1)]
        return np.stack([lengths.mean(axis=-1) / self.mean, *inside], axis=-1)


def population(workload: Workload, step: int = 0) -> Population:
    """Estimated from prompts that no run gets to."""
    lengths = generate(workload, np.arange(_FIRST_POSITION, _FIRST_POSITION + _SAMPLE), 1, step)
    edges = np.asarray(np.quantile(lengths, QUANTILES[1:-1]), np.float64)
    shares = np.bincount(np.searchsorted(edges, lengths.ravel(), side="right"), minlength=len(edges) + 1)
    return Population(float(lengths.mean()), edges, shares / lengths.size)


def generate(workload: Workload, prompts: Ints, attempt: int, step: int) -> Ints:
    """(groups, n) tokens of one attempt at some prompts."""
    return workload.lengths(prompts, np.full(len(prompts), attempt), step)


def deviations(
    outcomes: Iterable[StepOutcome], workload: Workload, of: Population, generations: tuple[int, int] = AS_RUN
) -> Floats:
    """(steps, 1 + intervals) deviation of each batch; see above.

    Args:
        outcomes: of a run on the workload.
        workload: its lengths.
        of: the population that is deviated from.
        generations: attempts that a fresh group and a tail group are measured by.
    """
    rows = []
    for outcome in outcomes:
        plan = outcome.plan
        tail = np.array([int(group.uid) for group in outcome.consumed if group.tail], np.int64)
        left = np.array([int(uid) for uid in outcome.candidates], np.int64)
        more = of.features(generate(workload, tail, generations[1], plan.step)).sum(axis=0)
        less = of.features(generate(workload, left, generations[0], plan.step)).sum(axis=0)
        groups = len(outcome.consumed)
        rows.append((more - less + (plan.q_next - plan.q) * of.expected) / groups)
    return np.array(rows)
