"""The recipes of the paper's runs have the paper's values, which stand here again as the paper prints them."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf
from unit.composed import RECIPES, ROOT, composed, config_of, leaves, names

from tailsieve_rl.algorithms.overlength import validate_overlength
from tailsieve_rl.benchmark.job import cell_config
from tailsieve_rl.benchmark.settings import SAMPLED, read_bench
from tailsieve_rl.rollout.checks import check_config, setup_of
from tailsieve_rl.rollout.prompt_stream import PromptStream

PAPER = [name for name in names() if name.startswith("paper/")]
TRAINED = {"qwen3.5-2b": "Qwen/Qwen3.5-2B", "qwen3.5-4b": "Qwen/Qwen3.5-4B"}
ARMS = {"tailsieve", "tailsieve_mtp", "uniform", "uniform_mtp", "verl_sync"}

TABLE_A1 = {
    "Maximum prompt length": ("data.max_prompt_length", 512),
    "Maximum response length": ("data.max_response_length", 16_384),
    "Temperature": ("actor_rollout_ref.rollout.temperature", 0.7),
    "Top-p": ("actor_rollout_ref.rollout.top_p", 0.8),
    "Top-k": ("actor_rollout_ref.rollout.top_k", 20),
    "Presence penalty": ("trainer.v1.tailsieve.sampling.presence_penalty", 1.5),
    "Thinking mode": ("data.apply_chat_template_kwargs.enable_thinking", False),
    "Stop sequence": ("trainer.v1.tailsieve.sampling.stop", ["<END>"]),
}
TABLE_A2 = {
    "Batch size, groups": ("data.train_batch_size", 64),
    "Batch size, responses": ("actor_rollout_ref.rollout.n", 8),
    "Training TP": ("actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size", 1),
    "Training micro-batch size": ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 8),
    "PPO clip ratio": ("actor_rollout_ref.actor.clip_ratio", 0.2),
    "PPO clip ratio, low": ("actor_rollout_ref.actor.clip_ratio_low", 0.2),
    "PPO clip ratio, high": ("actor_rollout_ref.actor.clip_ratio_high", 0.2),
    "Dual-clip coefficient": ("actor_rollout_ref.actor.clip_ratio_c", 3.0),
    "KL loss": ("actor_rollout_ref.actor.use_kl_loss", False),
    "KL reward": ("algorithm.use_kl_in_reward", False),
    "Entropy coefficient": ("actor_rollout_ref.actor.entropy_coeff", 0),
    "Learning rate": ("actor_rollout_ref.actor.optim.lr", 2e-7),
    "Learning-rate schedule": ("actor_rollout_ref.actor.optim.lr_scheduler_type", "constant"),
    "Learning-rate warm-up": ("actor_rollout_ref.actor.optim.lr_warmup_steps_ratio", 0.0),
    "Adam betas": ("actor_rollout_ref.actor.optim.betas", [0.9, 0.999]),
    "Weight decay": ("actor_rollout_ref.actor.optim.weight_decay", 0.01),
    "Gradient clipping": ("actor_rollout_ref.actor.optim.clip_grad", 1.0),
    "Gradient clipping, verl's other key": ("actor_rollout_ref.actor.grad_clip", 1.0),
    "Random seed, data": ("data.seed", 42),
    "Random seed, training": ("actor_rollout_ref.actor.fsdp_config.seed", 42),
    "Random seed, mini-batches": ("actor_rollout_ref.actor.data_loader_seed", 42),
    "Random seed, sampling": ("trainer.v1.tailsieve.sampling.seed", 42),
}
TEXT = {
    "eight H100s of one node (A.1)": ("trainer.n_gpus_per_node", 8),
    "one node (A.1)": ("trainer.nnodes", 1),
    "thirty steps (4.5)": ("trainer.total_training_steps", 30),
    "rollouts by vLLM (4.1)": ("actor_rollout_ref.rollout.name", "vllm"),
    "2B and 4B in TP1 replicas (4.1)": ("actor_rollout_ref.rollout.tensor_model_parallel_size", 1),
    "GRPO (4.1)": ("algorithm.adv_estimator", "grpo"),
    "not divided by the standard deviation (A.3)": ("algorithm.norm_adv_by_std_in_grpo", False),
}
STEPWISE = {
    "qwen3.5-35b-a3b": ("Qwen/Qwen3.5-35B-A3B", 4),
    "qwen3.5-4b": ("Qwen/Qwen3.5-4B", 8),
    "qwen3.5-2b": ("Qwen/Qwen3.5-2B", 8),
    "qwen3-30b-a3b": ("Qwen/Qwen3-30B-A3B-Instruct-2507", 4),
    "qwen3-4b": ("Qwen/Qwen3-4B-Instruct-2507", 8),
}
"""Model -> its weights, and its replicas on eight GPUs (4.1)."""


def in_tailsieve_mode(recipes: list[str]) -> list[str]:
    return [name for name in recipes if not name.endswith("verl_sync")]


def test_both_models_have_every_arm_and_dflash_where_there_is_a_drafter() -> None:
    wanted = {f"paper/{model}_{arm}" for model in TRAINED for arm in ARMS}
    assert set(PAPER) == wanted | {"paper/qwen3.5-4b_tailsieve_dflash", "paper/qwen3.5-4b_uniform_dflash"}


@pytest.mark.parametrize("table", [TABLE_A1, TABLE_A2, TEXT], ids=["A.1", "A.2", "text"])
@pytest.mark.parametrize("name", PAPER)
def test_a_training_recipe_has_the_papers_values(name: str, table: dict) -> None:
    found = leaves(composed(name))
    assert {row: found[key] for row, (key, _) in table.items()} == {row: value for row, (_, value) in table.items()}
    assert found["actor_rollout_ref.model.path"] == TRAINED[name.removeprefix("paper/").split("_")[0]]


@pytest.mark.parametrize("name", PAPER)
def test_the_overlength_penalty_is_the_papers(name: str) -> None:
    penalty = validate_overlength(config_of(name))
    assert penalty is not None

    def lost(tokens: int) -> float:
        beyond = max(0, tokens - penalty.free_tokens)
        return penalty.factor * beyond / (penalty.max_tokens - penalty.free_tokens)

    assert [lost(tokens) for tokens in (8_192, 9_216, 16_384)] == [0.0, 0.125, 1.0]


@pytest.mark.parametrize("name", PAPER)
def test_runs_of_a_model_differ_only_in_routing_drafts_and_names(name: str) -> None:
    model = name.split("_")[0]
    ours, other = (leaves(composed(recipe)) for recipe in (f"{model}_tailsieve", name))
    different = {key for key in ours.keys() | other.keys() if ours.get(key) != other.get(key)}
    names_only = {
        "trainer.experiment_name",
        "actor_rollout_ref.rollout.trace.experiment_name",
        "trainer.default_local_dir",
    }
    verls = {"trainer.v1.trainer_mode", "actor_rollout_ref.rollout.agent.agent_loop_manager_class"}
    allowed = names_only | {"trainer.v1.tailsieve.policy"} | (verls if name.endswith("verl_sync") else set())
    drafts = {key for key in different if key.startswith("trainer.v1.tailsieve.speculation.")}
    assert different - drafts - {"actor_rollout_ref.rollout.load_format"} <= allowed
    assert bool(drafts) == name.endswith(("mtp", "dflash"))


@pytest.mark.parametrize(("method", "drafter"), [("mtp", None), ("dflash", "z-lab/Qwen3.5-4B-DFlash")])
def test_drafts_are_three_tokens_in_both_pools_and_under_uniform_routing(method: str, drafter: str | None) -> None:
    """MTP with 3 speculative tokens, DFlash with blocks of 4, of which one token is given (4.2); D.1 keeps MTP on."""
    for name in (name for name in PAPER if name.endswith(method)):
        speculation = check_config(config_of(name).copy()).speculation
        assert (speculation.mode, speculation.methods, speculation.drafter) == ("fixed", (method,), drafter)
        depths = (speculation.tail.depth, speculation.bulk.depth, speculation.uniform.depth, speculation.depth)
        assert depths == (3, 3, 3, 3)
        assert composed(name)["actor_rollout_ref"]["rollout"]["load_format"] == "auto", (
            "a drafter is loaded, not random"
        )


@pytest.mark.parametrize("name", in_tailsieve_mode(PAPER))
def test_a_recipe_runs_the_policy_that_its_name_says(name: str) -> None:
    settings = check_config(config_of(name).copy())
    uniform = "_uniform" in name
    assert settings.policy == ("uniform" if uniform else "two_pool")
    assert (settings.controller.name, settings.warmup) == ("hierarchical", "reserve")
    assert setup_of(config_of(name)).replicas == 8


@pytest.mark.parametrize("name", PAPER)
def test_verl_accepts_a_recipe(name: str) -> None:
    from verl.utils.config import validate_config

    validate_config(config_of(name).copy(), use_reference_policy=False, use_critic=False)


def test_no_run_comes_near_the_prompts_that_the_warm_up_keeps_back() -> None:
    """In the order that verl draws from DeepScaleR's prompts, whatever the routing: the baseline's too (A.3)."""
    from verl.trainer.ppo.utils import create_rl_sampler

    config, rows = config_of("paper/qwen3.5-2b_tailsieve"), range(40_000)
    groups, steps = config.data.train_batch_size, config.trainer.total_training_steps

    def stream(reserve: int) -> PromptStream:
        return PromptStream([{}] * len(rows), create_rl_sampler(config.data, rows), list, reserve=reserve)

    ours, verls = stream(reserve=groups), stream(reserve=0)
    reserved = {prompt.index for prompt in ours.reserved()}
    drawn = [prompt.index for prompt in verls.draw(steps * groups)]
    assert len(reserved) == groups and not reserved & set(drawn)
    assert [prompt.index for prompt in ours.draw(steps * groups)] == drawn


@pytest.mark.parametrize("name", PAPER)
def test_one_flag_makes_a_recipe_two_steps_of_a_tiny_model_on_this_machine(name: str) -> None:
    full, config = composed(name), config_of(name, "+try=cpu")
    setup = setup_of(config)
    assert (config.trainer.device, config.trainer.total_training_steps) == ("cpu", 2)
    assert (setup.groups, setup.responses, setup.replicas) == (8, 2, 2)
    assert config.actor_rollout_ref.model.path == "outputs/gsm8k/model"
    penalty = validate_overlength(config)
    assert penalty is not None and (penalty.free_tokens, penalty.max_tokens) == (24, 48)
    assert config.trainer.v1.trainer_mode == full["trainer"]["v1"]["trainer_mode"]
    kept = {key: value for key, value in full["trainer"]["v1"]["tailsieve"].items() if key != "speculation"}
    assert {key: value for key, value in config.trainer.v1.tailsieve.items() if key != "speculation"} == kept
    if not name.endswith("verl_sync"):
        elsewhere = config.copy()
        elsewhere.actor_rollout_ref.model.path = "some/model"  # a folder that is not made yet would be missed
        drafts = set(check_config(elsewhere).speculation.methods)
        assert drafts == ({"ngram"} if name.endswith(("mtp", "dflash")) else set())


@pytest.mark.parametrize("model", STEPWISE)
def test_a_step_wise_cell_has_the_papers_values(model: str, tmp_path: Path) -> None:
    config = config_of("bench/stepwise", f"model={model}").copy()
    bench, compared = read_bench(config.bench), config.trainer.v1.tailsieve_rollout
    assert (bench.backend, bench.workloads) == ("vllm", (SAMPLED,))
    assert (compared.rounds, compared.baseline_repeats) == (3, 3)
    assert {"uniform", "tailsieve_fixed", "tailsieve_hierarchical", "tailsieve"} <= set(compared.policies)
    path, replicas = STEPWISE[model]
    for groups in (64, 128, 256):
        config.data.train_batch_size = groups
        cell = cell_config(config, bench, SAMPLED, config.data.max_response_length, tmp_path, None)
        assert not check_config(cell).replays, "the model's own lengths"
        setup = setup_of(cell)
        assert (setup.groups, setup.responses, setup.replicas) == (groups, 8, replicas)
    assert cell.actor_rollout_ref.model.path == path
    found = leaves(OmegaConf.to_container(cell, resolve=True))
    assert {row: found[key] for row, (key, _) in TABLE_A1.items()} == {row: v for row, (_, v) in TABLE_A1.items()}


def test_workloads_and_drafts_are_chosen_by_name() -> None:
    config = config_of("bench/stepwise", "workload=code", "speculation=mtp")
    assert config.data.train_files == "outputs/data/kodcode_train.parquet"
    assert config.trainer.v1.tailsieve.speculation.tail.method == "mtp"
    assert config_of("bench/stepwise").data.train_files == "outputs/data/deepscaler_train.parquet"


def test_one_flag_makes_the_step_wise_recipe_two_rounds_of_a_tiny_model() -> None:
    config = config_of("bench/stepwise", "+try=cpu")
    check_config(config.copy())
    assert (config.trainer.device, config.data.train_batch_size, config.actor_rollout_ref.rollout.n) == ("cpu", 8, 2)
    assert (config.trainer.v1.tailsieve_rollout.converge, config.trainer.v1.tailsieve_rollout.rounds) == (1, 2)


SCRIPTS = sorted(path.relative_to(RECIPES) for path in RECIPES.glob("*/run_*.sh"))


def started_by(script: Path, tmp_path: Path, **environment: str) -> list[list[str]]:
    """What a run script would start: `tailsieve` is replaced by one that writes down its arguments."""
    log = tmp_path / "started"
    fake = tmp_path / "bin" / "tailsieve"
    fake.parent.mkdir()
    fake.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$@" >>{log}\necho ---- >>{log}\n')
    fake.chmod(0o755)
    done = subprocess.run(
        ["bash", RECIPES / script, "+try=cpu"],
        env={"PATH": f"{fake.parent}:/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [text.split() for text in log.read_text().split("----\n") if text]


@pytest.mark.parametrize(
    ("script", "environment", "recipe"),
    [
        (f"paper/run_qwen3_5_{size}_fsdp{twin}.sh", environment, f"paper/qwen3.5-{size}_{arm}")
        for size in ("2b", "4b")
        for twin, environment, arm in [
            ("", {}, "tailsieve"),
            ("", {"SPECULATION": "mtp"}, "tailsieve_mtp"),
            ("_baseline", {}, "uniform"),
            ("_baseline", {"SPECULATION": "mtp"}, "uniform_mtp"),
            ("_baseline", {"ROUTING": "verl_sync"}, "verl_sync"),
        ]
    ],
)
def test_a_run_script_starts_its_recipe(script: str, environment: dict[str, str], recipe: str, tmp_path: Path) -> None:
    [command] = started_by(Path(script), tmp_path, **environment)
    assert command == ["train", "--config-name", recipe, "+try=cpu"]


def test_the_step_wise_script_runs_every_cell_of_table_4(tmp_path: Path) -> None:
    commands = started_by(Path("bench/run_stepwise.sh"), tmp_path, OUT="out")
    assert commands == [
        [
            *("bench", "--config-name", "bench/stepwise", f"model={model}", f"workload={workload}"),
            *(f"data.train_batch_size={groups}", f"bench.out=out/{model}-{workload}-{groups}", "+try=cpu"),
        ]
        for model in STEPWISE
        for workload in ("math", "code")
        for groups in (64, 128, 256)
    ]


def test_the_table_of_recipes_names_every_recipe_and_only_what_exists() -> None:
    from tailsieve_rl.simulation.experiments import EXPERIMENTS

    page = (RECIPES / "README.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        assert script.name in page
    for name in [*PAPER, *names(benchmarks=True)]:
        assert name.split("/")[1] in page, f"{name} is not in recipes/README.md"
    assert set(re.findall(r"tailsieve simulate ([\w-]+)", page)) <= set(EXPERIMENTS)
    for figure in ("Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4", "Fig. 6a", "Fig. 6b", "Fig. 7", "A.1", "B.1", "D.1"):
        assert figure in page
    for table in np.arange(1, 5):
        assert f"Table {table}" in page
    for link in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (RECIPES / link).exists(), link
    assert (ROOT / "scripts" / "try_recipes.sh").exists()
