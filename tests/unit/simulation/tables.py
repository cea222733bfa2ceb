"""Tables of lengths for tests, in memory and as files."""

from pathlib import Path

import numpy as np

from tailsieve_rl.simulation.length_table import LengthTable


def table(lengths: np.ndarray) -> LengthTable:
    """The table of (prompts, checkpoints, samples) tokens."""
    prompt, checkpoint, _ = np.indices(lengths.shape).reshape(3, -1)
    names = tuple(str(s) for s in range(lengths.shape[1]))
    return LengthTable(prompt, checkpoint, lengths.ravel(), names, "in memory")


def write_csv(path: Path, rows: list[str], header: str = "prompt_id,checkpoint,response_tokens") -> Path:
    """A CSV file of some lines."""
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path
