"""A workload from measured lengths: prompts and responses are drawn from a trace, with replacement."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.simulation.length_table import LengthTable, TraceError, read_lengths
from tailsieve_rl.simulation.workloads.noise import Stream, normals, of_attempts, uniforms

Ints = NDArray[np.int64]

SKY_T1 = Path(__file__).resolve().parent.parent / "data" / "traces" / "sky_t1_aime24.csv"
"""30 problems at 11 checkpoints of a fine-tuning run: of the longest fifth at one, only half is that at the next. It is
the stress case for "a long prompt stays long"."""

SKY_T1_SPREAD = 0.35
"""An estimate for a trace with greedy responses: coding prompts with three sampled responses each measured 0.33."""


@dataclass(frozen=True)
class TraceWorkload:
    """A `Workload` that resamples a trace.

    A position of the prompt stream stands for one of the trace's prompts, and each of its n responses for one of those
    measured of that prompt: fewer than n will do. Sampling noise depends on prompt and attempt, not on the step.

    Attributes:
        name: what results call it.
        seed: of the resampling, 0 or more.
        table: the trace. Prompts that were not measured at every checkpoint are left out.
        responses: n, responses of a group.
        steps_per_checkpoint: steps that are spent at each checkpoint, on the way along all of them and back, and so on.
        spread: standard deviation of the logarithm by which each drawn length is varied: what sampling adds where a
            trace has a single (greedy) response. 0: none.
        cap: tokens; the trace's longest response.
    """

    name: str
    seed: int
    table: LengthTable
    responses: int = 8
    steps_per_checkpoint: int = 10
    spread: float = 0.0
    cap: int = field(init=False)
    _padded: Ints = field(init=False, repr=False, compare=False)
    _counts: Ints = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.responses < 1 or self.steps_per_checkpoint < 1 or self.spread < 0:
            raise ValueError("responses and steps_per_checkpoint must be 1 or more, spread 0 or more")
        padded, counts = _by_checkpoint(self.table)
        object.__setattr__(self, "cap", int(self.table.tokens.max()))
        object.__setattr__(self, "_padded", padded)
        object.__setattr__(self, "_counts", counts)

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """(groups, n) tokens; see `Workload.lengths`."""
        checkpoint = self.checkpoint(step)
        which = (uniforms(self.seed, Stream.PROMPT, prompts, 1)[:, 0] * self._counts.shape[1]).astype(int)
        share, noise = np.empty((2, len(prompts), self.responses))
        for attempt, these in of_attempts(attempts):
            rows = np.asarray(prompts)[these]
            share[these] = uniforms(self.seed, Stream.RESPONSE, rows, self.responses, attempt)
            noise[these] = normals(self.seed, Stream.RESPONSE, rows, self.responses, attempt) if self.spread else 0.0
        drawn = (share * self._counts[checkpoint, which][:, None]).astype(int)
        lengths = self._padded[checkpoint, which[:, None], drawn] * np.exp(self.spread * noise)
        return np.clip(np.rint(lengths), 1, self.cap).astype(np.int64)

    def checkpoint(self, step: int) -> int:
        """Position of the checkpoint that a step is at."""
        last = len(self.table.checkpoints) - 1
        along = (step // self.steps_per_checkpoint) % max(2 * last, 1)
        return min(along, 2 * last - along)


def trace_workload(path: str | Path, seed: int, responses: int = 8, spread: float = 0.0) -> TraceWorkload:
    """The workload of a trace file.

    Raises:
        TraceError: as `read_lengths`, or if no prompt was measured at every checkpoint.
    """
    return TraceWorkload(Path(path).stem, seed, read_lengths(path), responses, spread=spread)


def sky_t1(seed: int, responses: int = 8) -> TraceWorkload:
    """The shipped trace; its greedy responses are varied by SKY_T1_SPREAD."""
    return trace_workload(SKY_T1, seed, responses, SKY_T1_SPREAD)


def _by_checkpoint(table: LengthTable) -> tuple[Ints, Ints]:
    """Lengths of each checkpoint and prompt, padded to the most responses, and how many there are."""
    shape = (len(table.checkpoints), table.prompts)
    cell = table.checkpoint * table.prompts + table.prompt
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    order = np.argsort(cell, kind="stable")
    column = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded = np.zeros((len(counts), int(counts.max())), np.int64)
    padded[cell[order], column] = table.tokens[order]
    everywhere = (counts.reshape(shape) > 0).all(axis=0)
    if not everywhere.any():
        raise TraceError(f"{table.source}: no prompt was measured at every one of the {shape[0]} checkpoints")
    return padded.reshape(*shape, -1)[:, everywhere], counts.reshape(shape)[:, everywhere]
