"""One tiny model with real prompts for all jobs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from e2e.jobs import ROOT

SHORT, LONG = (4, 16), (24, 40)
"""Ranges of the forced response lengths, tokens: one prompt in eight is long, in each of its responses."""


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/, val.parquet, and train.parquet: 64 prompts with a column `lengths` of 2 lengths each."""
    out = tmp_path_factory.mktemp("assets")
    prepare = [sys.executable, "examples/gsm8k/prepare.py", "--out", str(out)]
    subprocess.run(prepare, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    prompts = pq.read_table(out / "train.parquet").slice(0, 64)
    rng = np.random.default_rng(0)
    lengths = [rng.integers(*(LONG if i % 8 == 0 else SHORT), size=2).tolist() for i in range(len(prompts))]
    pq.write_table(prompts.append_column("lengths", pa.array(lengths)), out / "train.parquet")
    return out
