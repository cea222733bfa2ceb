"""The overlength penalty: verl's real DAPO reward manager against values computed by hand, and our checks."""

import asyncio

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager

from tailsieve_rl.algorithms.overlength import OverlengthSettings, overlength_overrides, validate_overlength
from tailsieve_rl.config.blocks import SettingsError


class Words:
    """A tokenizer as far as the reward manager needs one."""

    def decode(self, ids, skip_special_tokens):
        return f"{len(ids)} tokens"


def job(overrides=None, **changes):
    """verl's keys as they are, with command-line overrides and then single changes (None removes a key) applied."""
    made = OmegaConf.create(
        {
            "data": {"max_response_length": 512},
            "reward": {
                "custom_reward_function": {"path": None, "name": "compute_score"},
                "reward_manager": {"source": "register", "name": "naive"},
            },
        }
    )
    for key, value in (overlength_overrides() if overrides is None else overrides).items():
        OmegaConf.update(made, key.removeprefix("++"), value, force_add=True)
    for key, value in changes.items():
        if value is None:
            del made.reward.reward_kwargs.overlong_buffer_cfg[key]
        else:
            OmegaConf.update(made, KEYS[key], value, force_add=True)
    OmegaConf.set_struct(made, True)
    return made


BUFFER = "reward.reward_kwargs.overlong_buffer_cfg"
KEYS = {
    "max_resp_len": "reward.reward_kwargs.max_resp_len",
    "max_response_length": "data.max_response_length",
    "manager": "reward.reward_manager.name",
    "source": "reward.reward_manager.source",
} | {key: f"{BUFFER}.{key}" for key in ("enable", "len", "penalty_factor", "log")}


def reward_of(config, tokens, tmp_path):
    """What verl's reward manager gives a right answer of so many tokens."""
    function = tmp_path / "right.py"
    function.write_text("def compute_score(**kwargs):\n    return {'score': 1.0, 'acc': 1.0}\n")
    config.reward.custom_reward_function.path = str(function)
    mask = torch.zeros(1, 4 + 16384, dtype=torch.long)
    mask[:, : 4 + tokens] = 1
    objects = {"data_source": "any", "reward_model": {"ground_truth": "1"}, "extra_info": {}}
    data = DataProto.from_dict(
        tensors={"responses": torch.zeros(1, 16384, dtype=torch.long), "attention_mask": mask},
        non_tensors={key: np.array([value], dtype=object) for key, value in objects.items()},
    )

    async def run():
        return await load_reward_manager(config, Words()).run_single(data)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("tokens", "penalty"),
    [
        (1, 0.0),
        (8191, 0.0),
        (8192, 0.0),
        (8193, -1 / 8192),
        (9216, -0.125),
        (10240, -0.25),
        (12288, -0.5),
        (16384, -1.0),
    ],
)
def test_the_penalty_is_zero_up_to_8192_tokens_then_linear_to_one_at_16384(tokens, penalty, tmp_path):
    result = reward_of(job(), tokens, tmp_path)
    assert float(result["reward_score"]) == pytest.approx(1.0 + penalty, abs=1e-7)
    assert result["reward_extra_info"]["acc"] == 1.0
    assert float(result["reward_extra_info"]["overlong_reward"]) == pytest.approx(penalty, abs=1e-7)
    assert bool(result["reward_extra_info"]["overlong"]) == (penalty < 0)


def test_another_range_and_factor_reach_the_manager(tmp_path):
    config = job(overlength_overrides(free_tokens=120, max_tokens=200, factor=0.5))
    assert validate_overlength(config) == OverlengthSettings(free_tokens=120, max_tokens=200, factor=0.5)
    assert float(reward_of(config, 160, tmp_path)["reward_score"]) == pytest.approx(0.75)


def test_the_overrides_are_the_papers_and_stand_on_verls_command_line():
    from hydra import compose, initialize_config_module

    arguments = [f"{key}={value}" for key, value in overlength_overrides().items()]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=arguments)
    assert validate_overlength(config) == OverlengthSettings(free_tokens=8192, max_tokens=16384, factor=1.0)
    assert config.reward.reward_kwargs.overlong_buffer_cfg.len == 8192


def test_no_penalty_is_no_error():
    assert validate_overlength(job({})) is None
    assert validate_overlength(job(enable=False, manager="naive")) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_response_length": 8192}, r"max_resp_len=16384: must equal data.max_response_length=8192"),
        ({"max_resp_len": 0}, r"max_resp_len=0: must be a positive whole number"),
        ({"max_resp_len": "16k"}, r"max_resp_len='16k': must be a positive whole number"),
        ({"len": 16385}, r"len=16385: must be at most .*max_resp_len=16384"),
        ({"len": 0}, r"len=0: must be a positive"),
        ({"len": -1}, r"len=-1: must be a positive"),
        ({"len": 0.5}, r"len=0.5: must be a positive whole number"),
        ({"len": None}, r"len=None: must be a positive"),
        ({"penalty_factor": 0}, r"penalty_factor=0: must be a positive number"),
        ({"penalty_factor": float("nan")}, r"penalty_factor=nan: must be a positive number"),
        ({"penalty_factor": True}, r"penalty_factor=True: must be a positive number"),
        ({"penalty_factor": None}, r"penalty_factor=None: must be a positive number"),
        ({"log": None}, r"log=None: must be true or false"),
        ({"enable": "yes"}, r"enable='yes': must be true or false"),
        ({"manager": "naive"}, r"reward_manager.name='naive': must be dapo"),
        ({"source": "importlib"}, r"reward_manager.name='dapo': must be dapo, with source=register"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_key_and_value(changes, message):
    with pytest.raises(SettingsError, match=message):
        validate_overlength(job(**changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"free_tokens": 16384}, "free_tokens=16384: must be at least 0 and less than max_tokens=16384"),
        ({"free_tokens": -1}, "free_tokens=-1"),
        ({"factor": 0.0}, "factor=0.0: must be a positive number"),
    ],
)
def test_a_penalty_that_makes_no_sense_has_no_overrides(arguments, message):
    with pytest.raises(ValueError, match=message):
        overlength_overrides(**arguments)
