"""How long responses are, whose doing that is, and whether long prompts stay long (paper Appendix B)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.simulation.length_table import LengthTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TAIL_SHARE = 0.1
"""Share of the prompts that are a checkpoint's tail (Appendix B)."""

LEAST_PROMPTS = 10
"""Prompts that two checkpoints must share for an AUC: below, the tail is a single prompt of hardly any."""

PROMPT, CHECKPOINT, INTERACTION, SAMPLING = "prompt", "checkpoint", "interaction", "sampling"


@dataclass(frozen=True)
class Ranking:
    """How well one checkpoint's tail is found again at another.

    Attributes:
        source, target: checkpoints.
        auc: probability that a prompt of the source's tail is longer at the target than another one; 0.5 by chance.
        prompts: that both have.
    """

    source: str
    target: str
    auc: float
    prompts: int


@dataclass(frozen=True)
class Variance:
    """What the variance of lengths consists of.

    Attributes:
        design: which rows were used, in words, with what that means.
        prompts, checkpoints, samples: I, S and R of a balanced table; samples is a mean where it is not balanced.
        rows: responses that were used.
        sums_of_squares: share of the total of each source, as Appendix B has them; they sum to 1. Every share has some
            of the sampling in it.
        components: share of each source's variance component, estimated by the method of moments: what a source does by
            itself. Estimates below 0 count as 0.
    """

    design: str
    prompts: int
    checkpoints: int
    samples: float
    rows: int
    sums_of_squares: Mapping[str, float]
    components: Mapping[str, float]


@dataclass(frozen=True)
class LengthAnalysis:
    """What `analyze_lengths` finds. Lengths are tokens.

    Attributes:
        rows, prompts, checkpoints: what the table has.
        mean, p50, p90, p99, longest: of all rows.
        share_at_longest: of the rows that are as long as the longest: the truncated ones, where there is a cap.
        adjacent: rankings between neighbouring checkpoints.
        first_to_later: rankings from the first checkpoint to each later one.
        variance: None if no prompt has a second response.
    """

    rows: int
    prompts: int
    checkpoints: int
    mean: float
    p50: float
    p90: float
    p99: float
    longest: int
    share_at_longest: float
    adjacent: tuple[Ranking, ...]
    first_to_later: tuple[Ranking, ...]
    variance: Variance | None


def analyze_lengths(table: LengthTable) -> LengthAnalysis:
    """Appendix B's measurements of a table of lengths."""
    tokens = table.tokens
    p50, p90, p99 = np.percentile(tokens, [50, 90, 99])
    means, last = _cell_means(table), len(table.checkpoints) - 1
    return LengthAnalysis(
        rows=len(tokens),
        prompts=table.prompts,
        checkpoints=len(table.checkpoints),
        mean=float(tokens.mean()),
        p50=float(p50),
        p90=float(p90),
        p99=float(p99),
        longest=int(tokens.max()),
        share_at_longest=float((tokens == tokens.max()).mean()),
        adjacent=_rankings(table, means, [(s, s + 1) for s in range(last)]),
        first_to_later=_rankings(table, means, [(0, s) for s in range(1, last + 1)]),
        variance=variance_of(table),
    )


def tail_auc(source: ArrayLike, target: ArrayLike) -> float:
    """AUC(s, t) of Appendix B: does the longest tenth at one checkpoint rank above the others at another?

    Args:
        source: (prompts,) mean lengths that the tail set, ceil(0.1 I) prompts, is taken from; ties go to earlier ones.
        target: (prompts,) mean lengths that rank them; a tie counts half.

    Returns:
        a probability; nan if there are fewer than two prompts.
    """
    score, given = np.asarray(target, float), np.asarray(source, float)
    if len(given) < 2:
        return nan
    tail = np.zeros(len(given), bool)
    tail[np.argsort(-given, kind="stable")[: ceil(TAIL_SHARE * len(given))]] = True
    above = score[tail][:, None] - score[~tail]
    return float((above > 0).mean() + (above == 0).mean() / 2)


def variance_of(table: LengthTable) -> Variance | None:
    """Variance by source. The design decides how:

    * Prompts that were measured at every one of several checkpoints: two factors, on these prompts, with as many
      responses a cell as the smallest has (the first in the file's order), so that the table is balanced and the shares
      are those of Appendix B.
    * Else, as in a training run, in which a prompt is seen once an epoch: one factor, each prompt at each checkpoint
      taken for a prompt of its own. What checkpoints and interaction add is then in the prompt's share.
    """
    cells = table.checkpoint * table.prompts + table.prompt
    counts = np.bincount(cells, minlength=len(table.checkpoints) * table.prompts)
    crossed = counts.reshape(len(table.checkpoints), table.prompts)
    everywhere: NDArray[np.bool_] = np.all(crossed > 0, axis=0)
    if len(table.checkpoints) > 1 and everywhere.sum() > 1:
        return _two_factors(_balanced(table, everywhere, int(crossed[:, everywhere].min())))
    return _one_factor(table, cells) if counts.max() > 1 and (counts > 0).sum() > 1 else None


def _two_factors(lengths: Floats) -> Variance:
    """`lengths` is (prompts, checkpoints, samples)."""
    prompts, checkpoints, samples = lengths.shape
    by_prompt, by_checkpoint, by_cell = lengths.mean((1, 2)), lengths.mean((0, 2)), lengths.mean(2)
    grand = lengths.mean()
    squares = {
        PROMPT: checkpoints * samples * ((by_prompt - grand) ** 2).sum(),
        CHECKPOINT: prompts * samples * ((by_checkpoint - grand) ** 2).sum(),
        INTERACTION: samples * ((by_cell - by_prompt[:, None] - by_checkpoint + grand) ** 2).sum(),
        SAMPLING: ((lengths - by_cell[:, :, None]) ** 2).sum(),
    }
    interaction = squares[INTERACTION] / ((prompts - 1) * (checkpoints - 1))
    sampling = squares[SAMPLING] / (prompts * checkpoints * (samples - 1)) if samples > 1 else 0.0
    components = {
        PROMPT: (squares[PROMPT] / (prompts - 1) - interaction) / (checkpoints * samples),
        CHECKPOINT: (squares[CHECKPOINT] / (checkpoints - 1) - interaction) / (prompts * samples),
        INTERACTION: (interaction - sampling) / samples,
        SAMPLING: sampling,
    }
    design = f"{prompts} prompts x {checkpoints} checkpoints x {samples} responses each"
    if samples == 1:
        design += "; with one response each, sampling cannot be told from interaction and is in its share"
    return Variance(design, prompts, checkpoints, samples, lengths.size, _shares(squares), _shares(components))


def _one_factor(table: LengthTable, cells: Ints) -> Variance:
    """Cells of any sizes, by the unbalanced one-way analysis of variance."""
    lengths = table.tokens.astype(float)
    _, cell, counts = np.unique(cells, return_inverse=True, return_counts=True)
    means = np.bincount(cell, weights=lengths) / counts
    between = float((counts * (means - lengths.mean()) ** 2).sum())
    within = float(((lengths - means[cell]) ** 2).sum())
    groups, rows = len(counts), len(lengths)
    sampling = within / (rows - groups)
    size = (rows - (counts**2).sum() / rows) / (groups - 1)
    components = {PROMPT: (between / (groups - 1) - sampling) / size, SAMPLING: sampling}
    design = f"{groups} prompts x {rows / groups:.4g} responses"
    if len(table.checkpoints) > 1:
        design += "; prompts are not measured at every checkpoint, so what checkpoints do is in the prompt's share"
    squares = {PROMPT: between, SAMPLING: within}
    return Variance(design, groups, len(table.checkpoints), rows / groups, rows, _shares(squares), _shares(components))


def _shares(parts: Mapping[str, float]) -> dict[str, float]:
    positive = {name: max(float(part), 0.0) for name, part in parts.items()}
    total = sum(positive.values())
    return {name: part / total if total else 0.0 for name, part in positive.items()}


def _balanced(table: LengthTable, kept: NDArray[np.bool_], samples: int) -> Floats:
    """(prompts, checkpoints, samples): the first responses of each cell of the kept prompts."""
    cells = (np.cumsum(kept) - 1)[table.prompt] * len(table.checkpoints) + table.checkpoint
    rows = np.flatnonzero(kept[table.prompt])
    order = rows[np.argsort(cells[rows], kind="stable")]
    counts = np.bincount(cells[rows])
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return table.tokens[order[rank < samples]].reshape(-1, len(table.checkpoints), samples).astype(float)


def _cell_means(table: LengthTable) -> Floats:
    """(checkpoints, prompts) mean lengths; nan where a prompt was not measured."""
    shape = (len(table.checkpoints), table.prompts)
    cells, size = table.checkpoint * table.prompts + table.prompt, shape[0] * shape[1]
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, weights=table.tokens, minlength=size)
    return np.divide(sums, counts, out=np.full(size, nan), where=counts > 0).reshape(shape)


def _rankings(table: LengthTable, means: Floats, pairs: list[tuple[int, int]]) -> tuple[Ranking, ...]:
    found = []
    for s, t in pairs:
        both = ~np.isnan(means[s] + means[t])
        if both.sum() >= LEAST_PROMPTS:
            auc = tail_auc(means[s, both], means[t, both])
            found.append(Ranking(table.checkpoints[s], table.checkpoints[t], auc, int(both.sum())))
    return tuple(found)
