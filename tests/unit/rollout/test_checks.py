"""What is refused from verl's configuration, before Ray starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import verl
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.rollout.checks import check_config, check_data, setup_of
from tailsieve_rl.rollout.policy_of import make_policy
from tailsieve_rl.routing.control.tuning import Tuning
from tailsieve_rl.routing.decode_model import model_of_curve, save_profile
from tailsieve_rl.routing.policies import POLICIES, TwoPool

CONFIGS = str(Path(verl.__file__).parent / "trainer" / "config")


def _config(*overrides: str) -> DictConfig:
    base = ["trainer.use_v1=true", "data.train_batch_size=64", "actor_rollout_ref.rollout.name=vllm"]
    base += ["actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.tensor_model_parallel_size=1"]
    base += ["trainer.n_gpus_per_node=8"]
    with initialize_config_dir(CONFIGS, version_base=None):
        return compose("ppo_trainer", [*base, *overrides])


def _own(key: str, value: Any) -> str:
    return f"++trainer.v1.tailsieve.{key}={value}"


def _emulated(block: str) -> str:
    return f"++actor_rollout_ref.rollout.engine_kwargs.emulated={block}"


EMULATED = (
    "actor_rollout_ref.rollout.name=emulated",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "data.max_response_length=512",
    _own("replay_workload", "{name:math,divisor:32}"),
)


TEACHER = "distillation.teacher_models.teacher_model"
DISTILLED = (
    "distillation.enabled=true",
    "distillation.n_gpus_per_node=2",
    "distillation.nnodes=1",
    f"{TEACHER}.model_path=a/teacher",
)


def test_a_distillation_with_groups_of_one_is_accepted() -> None:
    config = _config(*DISTILLED, "actor_rollout_ref.rollout.n=1")
    check_config(config)
    assert setup_of(config).responses == 1


def test_emulated_replicas_are_as_many_as_their_own_setting_says() -> None:
    config = _config(*EMULATED, _emulated("{replicas:20}"))
    check_config(config)
    assert setup_of(config).replicas == 20


def test_a_profile_of_another_model_is_named_in_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "other.json"
    save_profile(replace(model_of_curve([1, 8], [0.01, 0.02]), model="other-7b"), path)
    check_config(_config(_own("decode_model", f"{{source:file,path:{path}}}")))
    assert "a profile of other-7b, the model is" in caplog.text


def test_verls_own_defaults_with_one_override_are_accepted() -> None:
    config = _config("trainer.v1.trainer_mode=tailsieve")
    settings = check_config(config)
    policy = make_policy(settings, setup_of(config))
    assert policy.initial(policy.start(setup_of(config))).q == 4


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([_own("allocation", "{initial_groups:64,initial_replicas:2}")], r"initial_groups=64: q must be between 0"),
        ([_own("allocation", "{initial_groups:-1,initial_replicas:2}")], r"initial_groups=-1"),
        ([_own("allocation", "{initial_groups:4,initial_replicas:8}")], r"initial_replicas=8: m must be between 0"),
        ([_own("allocation", "{initial_groups:4,initial_replicas:0}")], r"both must be 0"),
        (["actor_rollout_ref.rollout.n=0"], r"actor_rollout_ref.rollout.n=0: a group has 1 response or more"),
        (["actor_rollout_ref.rollout.max_num_seqs=64"], r"max_num_seqs=64: at allocation .* set it to 86 or more"),
        (["++algorithm.filter_groups.enable=true"], r"algorithm.filter_groups.enable=True: DAPO group filtering"),
        (["++skip.rollout_tq.enable=true"], r"skip.rollout_tq.enable=True"),
        (["actor_rollout_ref.rollout.name=sglang"], r"rollout.name='sglang': must be vllm .* single requests, by id"),
        (["actor_rollout_ref.rollout.full_determinism=true"], r"full_determinism=True: .*sampling.seed"),
        (["actor_rollout_ref.rollout.router_config_path=x.yaml"], r"router_config_path='x.yaml': mode tailsieve"),
        (["++actor_rollout_ref.rollout.agent.agent_loop_manager_class=a.B"], r"agent_loop_manager_class='a.B'"),
        (["actor_rollout_ref.rollout.agent.default_agent_loop=mine"], r"default_agent_loop='mine': no such agent loop"),
        (
            ["data.train_batch_size=32768", "actor_rollout_ref.rollout.max_num_seqs=100000"],
            r"train_batch_size=32768: .* holds 16384, 64 of them kept for control",
        ),
        (["trainer.use_v1=false"], r"trainer.use_v1=False"),
        ([_own("replay_workload", "{name:novel}")], r"replay_workload.name='novel': must be a trace file, or one"),
        (
            [_own("replay_workload", "{name:math,divisor:4}"), "data.max_response_length=4095"],
            r"max_response_length=4095: workload math has responses of 4096 tokens",
        ),
        ([*EMULATED[:-1]], r"replay_lengths=None: emulated engines have no model"),
        ([*EMULATED, "trainer.test_freq=5"], r"test_freq=5: emulated engines cannot validate: set it to -1"),
        ([*EMULATED, _emulated("{replicas:0}")], r"engine_kwargs.emulated.replicas=0: must be 1 or more"),
        ([*EMULATED, _emulated("{time_scale:0}")], r"emulated.time_scale=0.0: must be a positive number"),
        ([*EMULATED, _emulated("{profile:h900}")], r"emulated.profile='h900': must be a decode profile's file, or one"),
        ([*EMULATED, _emulated("{speed:9}")], r"emulated.speed=9: no such key; known keys are replicas"),
        (
            ["trainer.device=cpu", _own("sampling", "{seed:1}"), "actor_rollout_ref.rollout.max_num_batched_tokens=64"],
            r"max_num_batched_tokens=64: on CPU engines trainer.v1.tailsieve.sampling.seed needs",
        ),
        ([*DISTILLED, "distillation.nnodes=0"], r"distillation.nnodes=0: teachers have devices of their own"),
        ([*DISTILLED, "trainer.v1.trainer_mode=tailsieve_rollout"], r"distillation.enabled=True: nothing is trained"),
        ([*DISTILLED, *EMULATED], r"teacher_model.inference.name='emulated': emulated engines have no model"),
        ([*DISTILLED, f"{TEACHER}.model_path=null"], r"distillation=.*: model_path must be specified"),
        ([*DISTILLED, f"{TEACHER}.inference.max_model_len=99"], r"distillation=\{.*'a/teacher'\}: .*requires room for"),
        ([_own("policy", "magic")], r"policy='magic'"),
    ],
)
def test_what_cannot_work_is_refused_by_name(overrides: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_config(_config(*overrides))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_can_be_named(name: str, tmp_path: Path) -> None:
    save_profile(model_of_curve([1, 64], [0.01, 0.03]), tmp_path / "profile.json")
    config = _config(
        _own("policy", name),
        _own("replay_lengths", "lengths"),
        _own("decode_model", f"{{source:file,path:{tmp_path}/profile.json}}"),
    )
    setup = setup_of(config)
    policy = make_policy(check_config(config), setup)
    policy.start(setup)
    assert policy.name == name


def test_a_profile_that_cannot_be_read_is_refused_by_its_path() -> None:
    config = _config(_own("decode_model", "{source:file,path:/nowhere.json}"))
    with pytest.raises(SettingsError, match=r"decode_model.path='/nowhere.json': .*No such file"):
        check_config(config)


@pytest.mark.parametrize("name", ["joint", "hierarchical", "fixed"])
def test_a_controller_is_made_from_its_settings(name: str) -> None:
    config = _config(
        _own("controller", f"{{name:{name},max_change:3,switch_threshold:0.2}}"), _own("dispatch", "group")
    )
    policy = make_policy(check_config(config), setup_of(config))
    assert isinstance(policy, TwoPool) and type(policy.controller).__name__.lower() == name
    if name != "fixed":
        assert policy.controller.tuning == Tuning(max_change=3, switch_threshold=0.2, by_group=True)  # type: ignore[attr-defined]


def test_room_is_asked_for_the_worst_reachable_allocation() -> None:
    allocation = _own("allocation", "{initial_groups:32,initial_replicas:1}")
    with pytest.raises(SettingsError, match="set it to 256 or more"):
        check_config(_config(allocation, "actor_rollout_ref.rollout.max_num_seqs=255"))
    check_config(_config(allocation, "actor_rollout_ref.rollout.max_num_seqs=256"))


def test_untried_features_are_warned_of_once_each(caplog: pytest.LogCaptureFixture) -> None:
    check_config(_config("actor_rollout_ref.model.lora_rank=8"))
    assert [r.message for r in caplog.records if "LoRA" in r.message] == [
        "trainer mode tailsieve was not tested with LoRA"
    ]


@pytest.mark.parametrize(
    ("columns", "rows", "reserve", "extra", "message"),
    [
        (["raw_prompt", "__rollout_n__"], 999, 64, {}, "__rollout_n__"),
        (["raw_prompt"], 999, 64, {"replay_lengths": "lengths"}, "replay_lengths='lengths': .* no such column"),
        (["raw_prompt"], 127, 64, {}, "data.train_batch_size=64: .*127 prompts, 64 of them reserved.* needs 128"),
    ],
)
def test_data_that_cannot_do_is_refused(
    columns: list[str], rows: int, reserve: int, extra: dict[str, str], message: str
) -> None:
    config = _config(*(_own(key, value) for key, value in extra.items()))
    with pytest.raises(SettingsError, match=message):
        check_data(check_config(config), setup_of(config), columns, rows, reserve)
