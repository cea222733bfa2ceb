"""The drop-in example changes a run script of verl's by two arguments, and what it then asks for is accepted."""

import os
import subprocess
from pathlib import Path

import pytest
from unit.composed import RECIPES, composed, config_of, leaves

from tailsieve_rl.config.settings import SettingsError
from tailsieve_rl.rollout.checks import check_config, setup_of

PASSED_BY_VERL = """
algorithm.adv_estimator=grpo algorithm.use_kl_in_reward=False
data.train_files=/data/gsm8k/train.parquet data.val_files=/data/gsm8k/test.parquet
data.train_batch_size=512 data.max_prompt_length=1024 data.max_response_length=1024
data.filter_overlong_prompts=True data.truncation=error
actor_rollout_ref.model.path=Qwen/Qwen3-4B actor_rollout_ref.model.use_remove_padding=True
actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_mini_batch_size=256
actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.use_dynamic_bsz=True
actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.001
actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5
actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.6
actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2
trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.save_freq=20 trainer.test_freq=5 trainer.total_epochs=15
""".split()
"""What verl 0.9's run_qwen3_4b_fsdp.sh sets of what matters here; the arguments it is given follow."""


def passed_on(script: str, tmp_path: Path) -> list[str]:
    """The overrides that reach verl: its script is stood in for, and so is Python."""
    example = tmp_path / "verl" / "examples" / "grpo_trainer" / "run_qwen3_4b_fsdp.sh"
    example.parent.mkdir(parents=True)
    example.write_text(f'[ "$VERL_USE_UV" = 0 ] && python3 -m verl.trainer.main_ppo {" ".join(PASSED_BY_VERL)} "$@"\n')
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}", "VERL": str(tmp_path / "verl")}
    done = subprocess.run(
        ["bash", RECIPES / "drop_in" / script, "trainer.total_training_steps=3"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    module, *overrides = done.stdout.split()[1:]
    assert module == "verl.trainer.main_ppo"
    return overrides


def test_two_arguments_turn_verls_example_into_a_job_of_this_mode(tmp_path: Path) -> None:
    overrides = passed_on("run_qwen3_4b_fsdp.sh", tmp_path)
    config = config_of("ppo_trainer", *overrides)
    check_config(config.copy())
    setup = setup_of(config)
    assert (setup.groups, setup.responses, setup.replicas) == (512, 5, 4)
    assert config.trainer.v1.trainer_mode == "tailsieve"
    assert overrides[-1] == "trainer.total_training_steps=3"
    assert len(overrides) == len(PASSED_BY_VERL) + 3


def test_without_the_room_it_is_told_what_would_do() -> None:
    with pytest.raises(SettingsError, match=r"max_num_seqs=256: .* set it to 854 or more"):
        check_config(config_of("ppo_trainer", *PASSED_BY_VERL, "trainer.v1.trainer_mode=tailsieve"))


def test_its_baseline_differs_in_the_trainer_and_who_measures(tmp_path: Path) -> None:
    ours, verls = (
        leaves(composed("ppo_trainer", *passed_on(f"run_qwen3_4b_fsdp{twin}.sh", tmp_path / f"as{twin}")))
        for twin in ("", "_baseline")
    )
    assert {key for key in ours.keys() | verls.keys() if ours.get(key) != verls.get(key)} == {
        "trainer.v1.trainer_mode",
        "actor_rollout_ref.rollout.agent.agent_loop_manager_class",
    }
