"""The recipe on real prompts trains through the whole text path."""

from pathlib import Path

import pytest
from e2e.jobs import Job, run_job


@pytest.fixture(scope="module")
def job(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    out = tmp_path_factory.mktemp("gsm8k")
    command = [
        "-m",
        "tailsieve_rl.train",
        "--config-name",
        "cpu/gsm8k",
        f"data.train_files={assets}/train.parquet",
        f"data.val_files={assets}/val.parquet",
        f"actor_rollout_ref.model.path={assets}/model",
        f"trainer.default_local_dir={out}",
        "trainer.total_training_steps=2",
        "data.max_response_length=96",
        "algorithm.adv_estimator=dr_grpo",
    ]
    return run_job(command, out)


def test_two_steps_of_dr_grpo_on_gsm8k_consume_whole_groups_on_policy(job: Job) -> None:
    assert job.returncode == 0, job.log[-3000:]
    groups, responses = job.summary["groups_per_step"], job.summary["responses_per_group"]
    assert job.summary["consumed_groups"] == 2 * groups
    assert sum(row["status"] == "consumed" for row in job.requests) == 2 * groups * responses
    assert job.summary["off_policy_trajectories"] == 0
