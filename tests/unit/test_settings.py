"""Bad settings are refused with the key, the value and what would be right."""

import pickle

import pytest

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import read_settings


def test_a_missing_block_means_all_defaults() -> None:
    settings = read_settings(None)
    assert (settings.policy, settings.warmup, settings.dispatch) == ("two_pool", "reserve", "request")
    assert settings.controller.name == "joint" and settings.sampling.seed is None


def test_nested_values_are_read_with_their_types() -> None:
    settings = read_settings({"sampling": {"presence_penalty": 1, "stop": "<END>", "seed": 3}, "watchdog_s": 60})
    assert settings.sampling.presence_penalty == 1.0
    assert settings.sampling.stop == ("<END>",)
    assert settings.watchdog_s == 60.0


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"policy": "magic"}, r"trainer.v1.tailsieve.policy='magic': must be one of uniform, least_loaded, two_pool"),
        (
            {"replay_lengths": "lengths", "replay_workload": {"name": "math"}},
            r"replay_lengths='lengths': give replay_lengths or replay_workload, not both",
        ),
        ({"replay_workload": {"name": "math", "divisor": 0}}, r"replay_workload=.*divisor 1 or more"),
        ({"policy": "seer_oracle"}, r"replay_lengths=None: policy seer_oracle must be told the lengths"),
        ({"controller": {"name": "magic"}}, r"controller.name='magic': must be one of hierarchical, joint, fixed"),
        ({"warmup": "hot"}, r"warmup='hot': must be one of reserve, overlaunch, none"),
        ({"dispatch": "random"}, r"dispatch='random': must be one of request, group"),
        ({"controller": {"max_change": 0}}, r"controller.max_change=0: must be 1 group or more"),
        ({"controller": {"samples": 0}}, r"controller.samples=0: must be 1 or more"),
        ({"controller": {"momentum": 1}}, r"controller.momentum=1.0: must be between 0 and below 1"),
        ({"controller": {"ema": 0}}, r"controller.ema=0.0: must be above 0 and up to 1"),
        ({"decode_model": {"source": "guess"}}, r"decode_model.source='guess': must be one of online, file"),
        ({"decode_model": {"source": "file"}}, r"decode_model.path=None: must be the path of a decode profile"),
        ({"decode_model": {"path": "a.json"}}, r"decode_model.path='a.json': must be .* not be given without it"),
        ({"retries": -1}, r"retries=-1: must be 0 or more"),
        ({"watchdog_s": 0}, r"watchdog_s=0.0: must be a positive"),
        ({"retries": True}, r"retries=True: must be of type int"),
        ({"retries": "two"}, r"retries='two': must be of type int"),
        ({"polici": "uniform"}, r"trainer.v1.tailsieve.polici='uniform': no such key; known keys are policy"),
        ({"sampling": {"presence_penalty": 3}}, r"presence_penalty=3.0: must be between -2 and 2"),
        ({"sampling": {"stop": [""]}}, r"stop=\('',\): a stop string cannot be empty"),
        ({"sampling": {"stop": [1]}}, r"sampling.stop=\[1\]: must be a string or a list of strings"),
        ({"allocation": {"initial_groups": 4}}, r"allocation=.*give both"),
        ({"allocation": 4}, r"allocation=4: must be a block with the keys initial_groups"),
    ],
)
def test_a_bad_value_names_its_key_and_what_would_be_right(block: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(block)


def test_the_error_survives_the_way_through_ray() -> None:
    error = SettingsError("key", 3, "must be 4")
    assert str(pickle.loads(pickle.dumps(error))) == "key=3: must be 4"
