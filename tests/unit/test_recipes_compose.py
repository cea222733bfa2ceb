"""Every recipe composes on verl's own configuration, and the demonstration's twins differ only where they must."""

import pytest
from unit.composed import ROOT, composed, config_of, leaves, names

from tailsieve_rl import hydra_app
from tailsieve_rl.benchmark.settings import read_bench
from tailsieve_rl.config.rollout_only import read_rollout_only


@pytest.mark.parametrize("benchmarks", [False, True])
def test_every_recipe_is_offered(benchmarks):
    assert hydra_app.recipe_names(benchmarks) == names(benchmarks) != []


@pytest.mark.parametrize("name", names())
def test_a_recipe_is_verls_configuration_with_known_keys(name):
    """A misspelt key of verl's would be added silently: only these additions are meant."""
    verl = leaves(composed("ppo_trainer", "actor_rollout_ref.rollout.name=vllm"))
    added = {key for key in leaves(composed(name)) if key not in verl}
    parents = (
        "actor_rollout_ref.actor.fsdp_config.mixed_precision.",
        "actor_rollout_ref.ref.fsdp_config.mixed_precision.",
        "actor_rollout_ref.model.override_config.",
        "data.apply_chat_template_kwargs.",
        "reward.reward_kwargs.",
        "trainer.v1.tailsieve.",
    )
    keys = {
        "actor_rollout_ref.rollout.agent.agent_loop_manager_class",
        "actor_rollout_ref.rollout.enable_sleep_mode",
        "distillation.teacher_models.teacher_model.inference.enable_sleep_mode",
        "ray_kwargs.ray_init.include_dashboard",
        "ray_kwargs.ray_init.num_gpus",
    }
    assert {key for key in added if not key.startswith(parents)} <= keys


@pytest.mark.parametrize("name", names())
def test_a_recipe_fits_itself(name):
    config = composed(name)
    rollout, data = config["actor_rollout_ref"]["rollout"], config["data"]
    assert rollout["max_num_seqs"] >= rollout["n"] * data["train_batch_size"], "all responses on one replica"
    assert data["train_batch_size"] % config["actor_rollout_ref"]["actor"]["ppo_mini_batch_size"] == 0
    longest = data["max_prompt_length"] + data["max_response_length"]
    assert rollout["max_model_len"] == longest
    actor = config["actor_rollout_ref"]["actor"]
    assert not actor["use_dynamic_bsz"] or actor["ppo_max_token_len_per_gpu"] >= longest
    if config["trainer"]["device"] == "cpu":
        teachers = config["distillation"]["n_gpus_per_node"] if config["distillation"]["enabled"] else 0
        assert config["ray_kwargs"]["ray_init"]["num_gpus"] == config["trainer"]["n_gpus_per_node"] + teachers


@pytest.mark.parametrize("name", names())
def test_the_reward_of_a_recipe_exists(name):
    path = composed(name)["reward"]["custom_reward_function"]["path"]
    if path.startswith("pkg://"):
        path = path.removeprefix("pkg://").replace(".", "/") + ".py"
    assert "\ndef compute_score(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in names() if not name.endswith("_verl_sync")])
def test_the_trainer_mode_accepts_a_recipe(name):
    from tailsieve_rl.rollout.checks import check_config

    config = config_of(name).copy()
    config.actor_rollout_ref.model.path = "some/model"  # a folder that is not made yet would be missed
    check_config(config)


def test_the_twins_differ_only_in_mode_name_and_folder():
    ours, verls = leaves(composed("cpu/countdown")), leaves(composed("cpu/countdown_verl_sync"))
    timed = verls.pop("actor_rollout_ref.rollout.agent.agent_loop_manager_class")
    assert timed == "tailsieve_rl.rollout.timed.TimedAgentLoopManager", "measured, and otherwise verl's own rollout"
    assert ours.keys() == verls.keys()
    assert {key for key in ours if ours[key] != verls[key]} == {
        "trainer.v1.trainer_mode",
        "trainer.experiment_name",
        "actor_rollout_ref.rollout.trace.experiment_name",  # verl derives it
        "trainer.default_local_dir",
    }
    assert (ours["trainer.v1.trainer_mode"], verls["trainer.v1.trainer_mode"]) == ("tailsieve", "sync")


@pytest.mark.parametrize("name", names(benchmarks=True))
def test_a_benchmark_adds_only_its_own_block_and_is_read(name):
    # the quickstart's workload is what its training leaves
    config = composed(name, "bench.workloads=[math]")
    verl = leaves(composed("cpu/countdown")) | leaves(composed("ppo_trainer", "actor_rollout_ref.rollout.name=vllm"))
    added = {key for key in leaves(config) if key not in verl}
    parents = ("bench.", "data.apply_chat_template_kwargs.", "trainer.v1.tailsieve.", "trainer.v1.tailsieve_rollout.")
    assert {key for key in added if not key.startswith(parents)} <= {"ray_kwargs.ray_init.log_to_driver"}
    assert read_bench(config["bench"]).backend in (name.removeprefix("bench/"), "emulated", "vllm")
    assert "uniform" in read_rollout_only(config["trainer"]["v1"]["tailsieve_rollout"]).policies


def test_recipes_of_the_current_folder_come_first(tmp_path, monkeypatch):
    mine = tmp_path / "recipes" / "cpu"
    mine.mkdir(parents=True)
    (mine / "mine.yaml").write_text(
        "# @package _global_\ndefaults: [countdown, _self_]\ndata: {train_batch_size: 16}\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert composed("cpu/mine")["data"]["train_batch_size"] == 16
    assert "cpu/mine" in hydra_app.recipe_names()
