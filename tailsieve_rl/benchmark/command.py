"""`tailsieve bench`: policies side by side on one backend, as in the paper's step-wise evaluation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from omegaconf import DictConfig, OmegaConf

from tailsieve_rl.benchmark.assets import write_prompts, write_tokenizer
from tailsieve_rl.benchmark.cell import Rounds, judged
from tailsieve_rl.benchmark.job import cell_config, run_cell
from tailsieve_rl.benchmark.report import draw, table
from tailsieve_rl.benchmark.settings import BLOCK, SAMPLED, BenchSettings, read_bench
from tailsieve_rl.benchmark.virtual import VirtualCell
from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.rollout_only import BLOCK as ROLLOUT_ONLY
from tailsieve_rl.config.rollout_only import RolloutOnlySettings, read_rollout_only
from tailsieve_rl.config.settings import read_settings
from tailsieve_rl.hydra_app import run_app
from tailsieve_rl.rollout.checks import replicas_of, settings_block
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.routing.policies.named import BASELINE, drafts
from tailsieve_rl.simulation.profiles import replicas
from tailsieve_rl.simulation.profiles.speculation import modelled

HELP = """\
usage: tailsieve bench --config-name RECIPE [KEY=VALUE ...]

Compare routing policies under the same prompts, lengths and replicas; print a table, write results.json and bench.png.

  --config-name RECIPE  start from recipes/RECIPE.yaml:
                        {recipes}
  bench.backend=NAME    simulated (virtual time), emulated (the real job on emulated engines) or vllm (real engines)
  bench.models=[...]    decode profiles of replicas; bench.workloads=[...] response lengths; one cell for each pair
  trainer.v1.tailsieve_rollout.policies=[...]  what is compared; .converge, .rounds, .baseline_repeats
  --cfg job             print the configuration instead of running

example: tailsieve bench --config-name bench/emulated bench.models=[qwen3.5-35b-a3b-tp2]"""


def main(argv: Sequence[str]) -> int:
    """Run the benchmark, and return the exit code: 2 for bad input, 1 for a failed run."""
    return run_app("tailsieve bench", argv, HELP, bench, benchmarks=True)


def bench(config: DictConfig) -> None:
    """Measure every cell, print the table, write the results."""
    settings = read_bench(OmegaConf.select(config, BLOCK))
    compared = read_rollout_only(OmegaConf.select(config, ROLLOUT_ONLY))
    out = Path(settings.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"{BLOCK}.out", settings.out, f"cannot be written: {error.strerror}") from None
    models = settings.models if settings.backend != "vllm" else (Path(config.actor_rollout_ref.model.path).name,)
    cells = []
    for workload in settings.workloads:
        for model in models:
            print(f"bench: {settings.backend}: {model}, {workload}", file=sys.stderr, flush=True)
            cells.append(_cell(config, settings, compared, model, workload, out))
    results = {"backend": settings.backend, "seed": settings.seed, "cells": cells}
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, out / "bench.png")
    print(table(results))
    print(out / "results.json", out / "bench.png", sep="\n")


def _cell(
    config: DictConfig, bench: BenchSettings, compared: RolloutOnlySettings, model: str, workload: str, out: Path
) -> dict[str, Any]:
    setup, max_depth = _setup(config, bench, model), _max_depth(config, bench, compared)
    prompts = setup.groups * (compared.last + 2)
    name, longest = workload, config.data.max_response_length
    virtual: Rounds | None = None
    limits: dict[str, float | None] = {"best_static_s": None, "bound_s": None}
    if workload != SAMPLED:
        lengths = bench.lengths(workload, setup.responses)
        name, longest = lengths.name, lengths.cap // lengths.stretch
    if bench.backend != "vllm":
        drafting = modelled(model, bench.acceptance, max_depth)
        cell = VirtualCell(setup, lengths, drafting, reserve=prompts - setup.groups)
        virtual = cell.rounds(compared)
        limits = {"best_static_s": cell.best_static_s(compared), "bound_s": cell.bound_s(compared)}
    if bench.backend == "simulated":
        assert virtual is not None
        rounds, beside = virtual, None
    else:
        folder = out / f"{model}-{name}"
        emulated = _emulated(bench, setup, model, virtual, max_depth)
        job = cell_config(config, bench, workload, longest, folder, emulated)
        _assets(job, folder, prompts)
        rounds, beside = run_cell(job, compared, folder), virtual
    return {
        "model": model,
        "workload": name,
        "groups": setup.groups,
        "responses": setup.responses,
        "replicas": setup.replicas,
        **limits,
        "policies": judged(rounds, beside),
    }


def _setup(config: DictConfig, bench: BenchSettings, model: str) -> Setup:
    """N and n as configured; R as the profile's configuration has on eight GPUs, or as configured on real engines."""
    rollout = config.actor_rollout_ref.rollout
    count = replicas_of(config) if bench.backend == "vllm" else bench.replicas or replicas(model)
    return Setup(config.data.train_batch_size, rollout.n, count, rollout.max_num_seqs)


def _emulated(
    bench: BenchSettings, setup: Setup, model: str, virtual: Rounds | None, max_depth: int
) -> Mapping[str, Any] | None:
    """Settings of the engines; the time scale gives a step of the baseline the wall time that was asked for."""
    if virtual is None:
        return None
    step_s = sum(r.step_s for r in virtual[BASELINE]) / len(virtual[BASELINE])
    return {
        "replicas": setup.replicas,
        "profile": model,
        "acceptance": bench.acceptance,
        "max_depth": max_depth,
        "time_scale": bench.step_wall_s / step_s,
        "stretch": bench.stretch or bench.divisor,
    }


def _max_depth(config: DictConfig, bench: BenchSettings, compared: RolloutOnlySettings) -> int:
    """D of simulated and emulated replicas; 0 where none drafts."""
    if bench.backend == "vllm":
        return 0
    if bench.acceptance is None:
        needing = [name for name in compared.policies if drafts(name)]
        if needing:
            raise SettingsError(f"{BLOCK}.acceptance", None, f"{needing[0]} drafts: say how often drafts are accepted")
        return 0
    depth = read_settings(settings_block(config)).speculation.depth
    if not depth:
        raise SettingsError(f"{BLOCK}.acceptance", bench.acceptance, "needs trainer.v1.tailsieve.speculation.max_depth")
    return depth


def _assets(job: DictConfig, folder: Path, prompts: int) -> None:
    """As many prompts as the steps need, the user's or our own; a tokenizer where the engines have no model."""
    if job.data.train_files is None:
        job.data.train_files = write_prompts(folder, prompts)
    rows = sum(pq.read_metadata(file).num_rows for file in _listed(job.data.train_files))
    if rows < prompts:
        raise SettingsError("data.train_files", job.data.train_files, f"{rows} prompts; the steps need {prompts}")
    job.data.val_files = job.data.train_files
    if job.actor_rollout_ref.model.path is None:
        job.actor_rollout_ref.model.path = write_tokenizer(folder)


def _listed(files: Any) -> list[str]:
    return [files] if isinstance(files, str) else list(files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
