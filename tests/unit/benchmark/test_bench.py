"""What `tailsieve bench` refuses, computes and prints."""

import subprocess
import sys
from pathlib import Path

import pytest

from tailsieve_rl.benchmark.cell import Round, judged
from tailsieve_rl.benchmark.report import draw, table
from tailsieve_rl.benchmark.settings import read_bench
from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.rollout_only import RolloutOnlySettings, read_rollout_only

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = {
    "uniform": [Round(10.0, 0, 0, 0.0), Round(14.0, 0, 0, 0.0)],
    "least_loaded": [Round(11.0, 0, 0, 0.0)],
    "tailsieve": [Round(8.0, 6, 2, 0.25), Round(8.0, 6, 2, 0.15)],
}


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"backend": "tpu"}, r"bench.backend=\['tpu'\]: must be of simulated, emulated, vllm"),
        ({"models": ["gpt"]}, r"bench.models=\['gpt'\]: must be of qwen3.5-35b-a3b-tp2"),
        ({"models": []}, r"bench.models=None"),
        ({"workloads": ["novel"]}, r"bench.workloads='novel': must be a trace file, or one of math"),
        ({"seed": -1}, r"bench.seed=-1: must be 0 or more"),
        ({"divisor": 0}, r"bench.divisor=0"),
        ({"replicas": 0}, r"bench.replicas=0"),
        ({"step_wall_s": 0}, r"bench.step_wall_s=0.0: must be a positive number of seconds"),
        ({"speed": 1}, r"bench.speed=1: no such key"),
    ],
)
def test_a_benchmark_that_cannot_run_is_refused(block: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_bench(block)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"policies": ["uniform", "random"]}, r"policies=\['uniform', 'random'\]: must be uniform and any of"),
        ({"policies": ["tailsieve"]}, r"must be uniform and any of"),
        ({"policies": ["uniform", "uniform"]}, r"each once"),
        ({"converge": -1}, r"converge=-1: must be 0 or more"),
        ({"rounds": 0}, r"rounds=0: must be 1 or more"),
        ({"baseline_repeats": 0}, r"baseline_repeats=0"),
    ],
)
def test_a_comparison_that_cannot_run_is_refused(block: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_rollout_only(block)


def test_the_baseline_runs_first_last_and_between() -> None:
    runs = list(RolloutOnlySettings(converge=4, rounds=3).runs())
    assert [run.name for run in runs] == ["uniform-1", "least_loaded", "uniform-2", "tailsieve", "uniform-3"]


def test_only_policies_that_adapt_run_the_steps_before_the_measured_ones() -> None:
    first = {run.policy: run.first for run in RolloutOnlySettings(converge=4, rounds=3).runs()}
    assert first == {"uniform": 5, "least_loaded": 5, "tailsieve": 1}


def test_speedups_are_over_the_mean_of_the_baselines_rounds() -> None:
    found = judged(ROUNDS)
    assert found["tailsieve"]["speedup"] == pytest.approx(12 / 8)
    assert found["tailsieve"]["speedup_over_least_loaded"] == pytest.approx(11 / 8)
    assert found["tailsieve"]["wasted_fraction"] == pytest.approx(0.2)
    assert (found["tailsieve"]["q"], found["tailsieve"]["m"]) == (6, 2)


def test_emulated_times_stand_beside_virtual_ones() -> None:
    virtual = {"uniform": [Round(12.0, 0, 0, 0.0)], "least_loaded": [], "tailsieve": [Round(10.0, 6, 2, 0.2)]}
    virtual["least_loaded"] = [Round(11.0, 0, 0, 0.0)]
    found = judged(ROUNDS, virtual)
    assert found["tailsieve"]["step_error"] == pytest.approx(-0.2)
    assert found["tailsieve"]["virtual_speedup"] == pytest.approx(1.2)
    assert found["uniform"]["step_error"] == pytest.approx(0.0)


def test_the_table_names_the_backend_and_the_figure_is_drawn(tmp_path: Path) -> None:
    cell = {"model": "m", "workload": "math", "groups": 64, "responses": 8, "replicas": 8, "policies": judged(ROUNDS)}
    results = {"backend": "simulated", "cells": [cell]}
    lines = table(results).splitlines()
    assert lines[0] == "m, math: 64 groups x 8 on 8 simulated replicas"
    assert lines[-1].split()[:3] == ["tailsieve", "8.0", "(8.0-8.0)"]
    draw(results, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 5000


def test_bad_input_is_one_line_and_exit_code_2() -> None:
    command = [sys.executable, "-m", "tailsieve_rl.benchmark.command", "--config-name", "bench/simulated"]
    done = subprocess.run([*command, "bench.models=[gpt]"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("tailsieve: error: bench.models=['gpt']: must be of qwen3.5-35b")
