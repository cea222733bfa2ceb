"""Recipes at work: a run of the paper's by its one flag, with MTP, and on-policy distillation."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from e2e.jobs import Job, run_job
from omegaconf import OmegaConf
from transformers import AutoModelForCausalLM
from verl.trainer.ppo.utils import create_rl_sampler

from tailsieve_rl.checkpoints.qwen3_5 import write_qwen3_5_mtp
from tailsieve_rl.rollout.prompt_stream import PromptStream

TRAIN = ["-m", "tailsieve_rl.train", "--config-name"]


def where(assets: Path, out: Path) -> list[str]:
    return [
        f"data.train_files={assets}/train.parquet",
        f"data.val_files={assets}/val.parquet",
        f"actor_rollout_ref.model.path={assets}/model",
        f"trainer.default_local_dir={out}",
    ]


@pytest.fixture(scope="module")
def paper(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Routing and MTP. The model is a Qwen3.5 with an MTP head, in the place of the one that is too large."""
    out = tmp_path_factory.mktemp("paper")
    write_qwen3_5_mtp(out / "model", acceptance=0.9)
    overrides = [
        f"actor_rollout_ref.model.path={out}/model",
        "try.drafts=mtp",
        "data.max_prompt_length=1024",  # its tokens are bytes
        "actor_rollout_ref.rollout.max_model_len=1088",
        "actor_rollout_ref.rollout.dtype=bfloat16",
        "actor_rollout_ref.rollout.enable_prefix_caching=false",
    ]
    return run_job([*TRAIN, "paper/qwen3.5-2b_tailsieve_mtp", "+try=cpu", *where(assets, out), *overrides], out)


def test_a_run_of_the_papers_takes_two_steps_on_this_machine_by_one_flag(paper: Job) -> None:
    assert paper.returncode == 0, paper.log[-3000:]
    assert [(step["step"], step["q"], step["consumed_groups"]) for step in paper.steps] == [(1, 1, 8), (2, 1, 8)]
    assert paper.summary["off_policy_trajectories"] == 0


def test_its_first_tail_set_is_of_the_prompts_kept_back_of_which_no_other_is_trained(paper: Job) -> None:
    order = create_rl_sampler(OmegaConf.create({"shuffle": True, "seed": 42}), range(64))
    reserved = {prompt.uid for prompt in PromptStream([{}] * 64, order, list, reserve=8).reserved()}
    consumed = [row for row in paper.requests if row["status"] == "consumed"]
    assert {row["uid"] for row in consumed if row["step"] == 1 and row["pool"] == "tail"} <= reserved
    assert len({row["uid"] for row in consumed} & reserved) == paper.steps[0]["q"] == 1


def test_its_drafts_are_accepted_before_and_after_a_weight_update_and_change_no_probability(paper: Job) -> None:
    assert paper.steps[0]["m"] == 1
    for step in paper.steps:
        assert (step["draft_depth_tail"], step["draft_depth_bulk"]) == (3, 3)
        for pool in ("tail", "bulk") if step["m"] else ("bulk",):  # what step 1 took may end isolation in step 2
            assert step[f"accept_length_{pool}"] > 2.0
            assert step[f"accepted_tokens_{pool}"] < step[f"drafted_tokens_{pool}"]
    # What the trainer computes for the sampled tokens, in float32, against what the engine sampled them with.
    differences = [float(found) for found in re.findall(r"training/rollout_probs_diff_mean:([\d.e-]+)", paper.log)]
    assert len(differences) == 2 and max(differences) < 0.01
    assert len(re.findall(r"rollout/spec_accept_length:", paper.log)) == 2  # verl's own name


@pytest.fixture(scope="module")
def distilled(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The student is the assets' model; its teacher is the same, five times as sure of everything."""
    out = tmp_path_factory.mktemp("distilled")
    shutil.copytree(assets / "model", out / "teacher")
    teacher = AutoModelForCausalLM.from_pretrained(assets / "model")
    with torch.no_grad():
        teacher.model.norm.weight.mul_(5)
    teacher.save_pretrained(out / "teacher")
    overrides = [
        "data.train_batch_size=16",
        "data.max_prompt_length=512",
        "data.max_response_length=48",
        "reward.custom_reward_function.path=pkg://tailsieve_rl.algorithms.math_reward",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.actor.optim.lr=0.002",
        "actor_rollout_ref.rollout.max_model_len=560",
        f"distillation.teacher_models.teacher_model.model_path={out}/teacher",
        "distillation.teacher_models.teacher_model.inference.max_model_len=561",
        "++trainer.v1.tailsieve={controller:{name:fixed},allocation:{initial_groups:3,initial_replicas:1}}",
        "trainer.total_training_steps=3",
    ]
    return run_job([*TRAIN, "cpu/distillation", *where(assets, out), *overrides], out)


def test_a_student_comes_closer_to_its_teacher(distilled: Job) -> None:
    assert distilled.returncode == 0, distilled.log[-3000:]
    losses = [float(loss) for loss in re.findall(r"distillation/loss:([\d.]+)", distilled.log)]
    assert len(losses) == 3 and losses[2] < losses[0]


def test_distillation_isolates_the_tail_and_loses_no_prompt(distilled: Job) -> None:
    assert [(step["q"], step["m"], step["consumed_groups"]) for step in distilled.steps] == [(3, 1, 16)] * 3
    assert all(len(uids) == 16 for uids in distilled.consumed().values())
    aborted = {(row["step"] + 1, row["uid"]) for row in distilled.requests if row["status"] == "aborted"}
    tail = {(row["step"], row["uid"]) for row in distilled.requests if row["pool"] == "tail" and row["step"] > 1}
    assert aborted == tail
    assert distilled.summary["off_policy_trajectories"] == 0
