"""The whole verl job, and the benchmark, on emulated replicas."""

import json
from pathlib import Path

import numpy as np
import pytest
from e2e.jobs import Job, gsm8k, run_bench, run_job

REPLICAS = 5
EMULATED = "++actor_rollout_ref.rollout.engine_kwargs.emulated"
REPLAY = "++trainer.v1.tailsieve.replay_workload"
DIVISOR = 350
"""16,384 tokens of the workload are 47 of the job."""


@pytest.fixture(scope="module")
def job(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    out = tmp_path_factory.mktemp("emulated")
    overrides = [
        "actor_rollout_ref.rollout.name=emulated",
        f"{EMULATED}={{replicas:{REPLICAS},profile:qwen3.5-2b,time_scale:0.02,stretch:{DIVISOR}}}",
        f"{REPLAY}={{name:math_stepwise,seed:0,divisor:{DIVISOR}}}",
        "++trainer.v1.tailsieve.controller.name=fixed",
        "trainer.total_training_steps=3",
    ]
    return run_job(gsm8k(assets, out, *overrides), out)


def test_a_job_trains_on_more_emulated_replicas_than_it_has_ranks(job: Job) -> None:
    assert job.returncode == 0, job.log[-3000:]
    assert [len(uids) for uids in job.consumed().values()] == [8, 8, 8]
    used = {row["replica"] for row in job.requests}
    assert used == {f"emulated-{rank}" for rank in range(REPLICAS)}


def test_its_results_say_that_they_are_emulated(job: Job) -> None:
    assert job.summary["backend"] == "emulated"


def test_every_response_has_the_weights_of_its_step_and_its_forced_length(job: Job) -> None:
    assert job.summary["off_policy_trajectories"] == 0
    lengths = [row["response_tokens"] for row in job.requests if row["status"] == "consumed"]
    assert len(lengths) == 3 * 8 * 2 and len(set(lengths)) > 5 and max(lengths) <= 47


def test_a_regenerated_response_has_a_length_of_its_own(job: Job) -> None:
    again = {(r["uid"], r["session"]): r["response_tokens"] for r in job.requests if r["attempt"] == 2}
    fresh = {(r["uid"], r["session"]): r["response_tokens"] for r in job.requests if r["attempt"] == 1}
    both = [(fresh[key], tokens) for key, tokens in again.items() if key in fresh]
    assert len(both) >= 6 and any(first != second for first, second in both)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> dict:
    out = tmp_path_factory.mktemp("bench_emulated")
    overrides = [
        "data.train_batch_size=16",
        "actor_rollout_ref.rollout.n=4",
        "bench.divisor=64",
        "bench.step_wall_s=2",
        "trainer.v1.tailsieve_rollout={policies:[uniform,seer_oracle,tailsieve],converge:2,rounds:2,baseline_repeats:1}",
    ]
    run_bench("bench/emulated", out, *overrides)
    return json.loads((out / "results.json").read_text())


def test_emulated_steps_take_the_time_that_virtual_time_says(bench: dict) -> None:
    [cell] = bench["cells"]
    errors = [abs(found["step_error"]) for found in cell["policies"].values()]
    assert bench["backend"] == "emulated" and set(cell["policies"]) == {"uniform", "seer_oracle", "tailsieve"}
    assert np.median(errors) < 0.03


def test_an_oracle_that_is_told_the_lengths_is_no_slower_than_uniform_groups(bench: dict) -> None:
    assert bench["cells"][0]["policies"]["seer_oracle"]["speedup"] > 1.0
