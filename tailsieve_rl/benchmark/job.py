"""A cell as the real job: rollouts without training, on emulated or real engines."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from tailsieve_rl.benchmark.cell import Round, Rounds
from tailsieve_rl.benchmark.settings import SAMPLED, BenchSettings
from tailsieve_rl.config.rollout_only import RolloutOnlySettings
from tailsieve_rl.routing.policies.named import BASELINE
from tailsieve_rl.telemetry.progress import shown
from tailsieve_rl.train import train


def cell_config(
    config: DictConfig, bench: BenchSettings, workload: str, longest: int, out: Path, emulated: Mapping[str, Any] | None
) -> DictConfig:
    """The job's configuration for one cell.

    Args:
        config: the user's.
        bench: the block `bench`.
        workload: its name; SAMPLED: lengths are the model's own.
        longest: longest response, tokens of the job.
        out: folder of the cell.
        emulated: settings of emulated engines; None: real ones.
    """
    cell = config.copy()
    with open_dict(cell):
        cell.trainer.v1.trainer_mode = "tailsieve_rollout"
        cell.trainer.default_local_dir = str(out)
        OmegaConf.update(cell, "trainer.v1.tailsieve_rollout.output_dir", str(out), force_add=True)
        if workload != SAMPLED:
            replay = {"name": workload, "seed": bench.seed, "divisor": bench.divisor}
            OmegaConf.update(cell, "trainer.v1.tailsieve.replay_workload", replay, force_add=True)
        cell.data.max_response_length = longest
        rollout = cell.actor_rollout_ref.rollout
        rollout.name = bench.backend
        if emulated is not None:
            OmegaConf.update(cell, "actor_rollout_ref.rollout.engine_kwargs.emulated", emulated, force_add=True)
    return cell


def run_cell(cell: DictConfig, compared: RolloutOnlySettings, out: Path) -> Rounds:
    """Run the job and read the measured steps from its result files."""
    for run in compared.runs():
        shutil.rmtree(out / run.name, ignore_errors=True)
    steps = {run.name: run.last - run.first + 1 for run in compared.runs()}
    # What verl prints on its way goes aside; the results are ours.
    with contextlib.redirect_stdout(sys.stderr), shown("bench", steps, out):
        train(cell)
    rounds: dict[str, list[Round]] = {}
    for run in compared.runs():
        lines = [json.loads(line) for line in (out / run.name / "steps.jsonl").read_text().splitlines()]
        measured = [line for line in lines if line["step"] > compared.converge]
        rounds.setdefault(run.policy, []).extend(
            Round(
                line["gen_time_s"],
                line["q"],
                line["m"],
                line["wasted_fraction"],
                (line.get("draft_depth_tail"), line.get("draft_depth_bulk")),
            )
            for line in measured
        )
    assert BASELINE in rounds
    return rounds
