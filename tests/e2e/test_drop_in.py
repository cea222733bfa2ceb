"""An existing verl job, changed by one override."""

from pathlib import Path

import pytest
from e2e.jobs import Job, run_job
from e2e.wandb_file import history

from tailsieve_rl import cli
from tailsieve_rl.telemetry.dashboard import ALWAYS

EXISTING_JOB = """
-m verl.trainer.main_ppo
trainer.use_v1=true trainer.nnodes=1
trainer.logger=[console,wandb] trainer.project_name=tests trainer.experiment_name=drop-in
trainer.val_before_train=false trainer.test_freq=2 trainer.save_freq=-1 trainer.resume_mode=disable
trainer.total_training_steps=3 trainer.total_epochs=1
ray_kwargs.ray_init.num_cpus=24 +ray_kwargs.ray_init.include_dashboard=false
algorithm.adv_estimator=grpo
data.train_batch_size=8 data.max_prompt_length=512 data.max_response_length=48
data.dataloader_num_workers=0 data.val_batch_size=8 data.val_max_samples=8
actor_rollout_ref.model.use_remove_padding=false
++actor_rollout_ref.model.override_config.attn_implementation=sdpa
actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.use_torch_compile=false
actor_rollout_ref.actor.ppo_mini_batch_size=8
++actor_rollout_ref.actor.fsdp_config.model_dtype=fp32
++actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype=fp32
++actor_rollout_ref.actor.fsdp_config.mixed_precision.reduce_dtype=fp32
++actor_rollout_ref.actor.fsdp_config.mixed_precision.buffer_dtype=fp32
actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=2 actor_rollout_ref.rollout.dtype=float32
actor_rollout_ref.rollout.enforce_eager=true
actor_rollout_ref.rollout.free_cache_engine=false ++actor_rollout_ref.rollout.enable_sleep_mode=false
actor_rollout_ref.rollout.load_format=auto actor_rollout_ref.rollout.max_num_seqs=32
actor_rollout_ref.rollout.agent.num_workers=1
actor_rollout_ref.rollout.calculate_log_probs=true
actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes=16
reward.num_workers=1 reward.custom_reward_function.path=pkg://tailsieve_rl.algorithms.math_reward
transfer_queue.backend.SimpleStorage.num_data_storage_units=1
""".split()


@pytest.fixture(scope="module")
def job(assets: Path, tensor_parallel: int, tmp_path_factory: pytest.TempPathFactory) -> Job:
    out = tmp_path_factory.mktemp("drop_in")
    ranks = 2 * tensor_parallel
    two_replicas = [
        f"trainer.n_gpus_per_node={ranks}",
        f"+ray_kwargs.ray_init.num_gpus={ranks}",
        f"actor_rollout_ref.rollout.tensor_model_parallel_size={tensor_parallel}",
        f"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu={8 * 2 // ranks}",
        f"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu={8 * 2 // ranks}",
    ]
    where = [
        f"data.train_files={assets}/train.parquet",
        f"data.val_files={assets}/val.parquet",
        f"actor_rollout_ref.model.path={assets}/model",
        f"trainer.default_local_dir={out}",
    ]
    one_override = "trainer.v1.trainer_mode=tailsieve"
    return run_job(
        [*EXISTING_JOB, *two_replicas, *where, one_override], out, env={"WANDB_MODE": "offline", "WANDB_DIR": str(out)}
    )


def test_the_job_trains_to_its_end(job: Job) -> None:
    assert job.returncode == 0, job.log[-3000:]
    assert [step["step"] for step in job.steps] == [1, 2, 3]


def test_every_step_consumes_exactly_n_whole_groups_sampled_on_policy(job: Job) -> None:
    assert all(len(uids) == 8 for uids in job.consumed().values())
    responses = [row for row in job.requests if row["status"] == "consumed"]
    assert len(responses) == 3 * 8 * 2
    assert job.summary["off_policy_trajectories"] == 0


def test_tail_groups_run_on_the_tail_replica_and_fresh_ones_on_the_other(job: Job) -> None:
    assert job.steps[0]["m"] == 1
    for step in job.steps:
        rows = [row for row in job.requests if row["step"] == step["step"]]
        tail, bulk = ({r["replica"] for r in rows if r["pool"] == pool} for pool in ("tail", "bulk"))
        assert len(tail | bulk) == 2
        assert step["m"] == 0 or (len(tail) == len(bulk) == 1 and tail != bulk)


def test_what_a_cutoff_leaves_over_is_regenerated_from_scratch_in_the_next_step(job: Job) -> None:
    aborted = {(r["step"] + 1, r["uid"]) for r in job.requests if r["status"] == "aborted"}
    tail = {(r["step"], r["uid"]) for r in job.requests if r["pool"] == "tail" and r["step"] > 1}
    assert aborted == tail
    assert all(r["attempt"] == 2 for r in job.requests if r["pool"] == "tail")


def test_the_last_step_leaves_nothing_over(job: Job) -> None:
    assert job.steps[-1]["q_next"] == 0 and job.steps[-1]["candidates"] == 0


def test_validation_runs_in_between_and_reports_verls_metrics(job: Job) -> None:
    assert "val-core/" in job.log


def test_its_report_and_trace_can_be_drawn(job: Job) -> None:
    page, trace = job.out / "page.html", job.out / "trace.json"
    assert cli.main(["report", str(job.out), "--out", str(page), "--trace", str(trace)]) == 0
    assert all(uid in page.read_text() and uid in trace.read_text() for uids in job.consumed().values() for uid in uids)


def test_a_run_logged_offline_has_every_metric_that_the_dashboards_panels_name(job: Job) -> None:
    [file] = job.out.glob("wandb/offline-run-*/*.wandb")
    logged = history(file)
    assert len(logged) == 3
    assert set(ALWAYS) - set().union(*logged) == set()


def test_the_loggers_and_the_result_files_say_the_same(job: Job) -> None:
    [file] = job.out.glob("wandb/offline-run-*/*.wandb")
    for step, logged in zip(job.steps, history(file), strict=True):
        for key in ("gen_time_s", "q", "response_length_p90", "truncated_fraction", "predicted_s"):
            assert logged.get(f"tailsieve/{key}") == step.get(key)
    assert job.summary["model"].endswith("/model")
