"""Decode profiles of the paper's configurations: what is committed is what the roofline says, and it is physical."""

import numpy as np
import pytest

from tailsieve_rl.routing.decode_model import MODELLED
from tailsieve_rl.simulation.profiles import FOLDER, PROFILES, profile, replicas, write_profiles
from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS
from tailsieve_rl.simulation.profiles.roofline import (
    dense_parameters,
    distinct_experts,
    expert_parameters,
    full_layers,
)

MOE = ("qwen3.5-35b-a3b-tp2", "qwen3-30b-a3b-tp2")
DENSE = ("qwen3.5-4b", "qwen3.5-2b", "qwen3-4b")
B = np.arange(1, 4097)


def test_the_committed_files_are_what_the_roofline_computes(tmp_path):
    written = write_profiles(tmp_path)
    assert sorted(path.name for path in written) == sorted(path.name for path in FOLDER.glob("*.json"))
    for path in written:
        assert path.read_text() == (FOLDER / path.name).read_text(), f"{path.name} differs: write the profiles anew"


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_says_that_it_is_modelled_and_reaches_from_one_request_to_4096(name):
    found = profile(name)
    assert found.kind == MODELLED and "H100" in found.device
    assert [point.b for point in found.points] == [2**i for i in range(13)]


@pytest.mark.parametrize("name", PROFILES)
def test_a_token_never_gets_quicker_and_a_replica_never_slower_with_more_requests(name):
    tau = profile(name).tau(B)
    assert (np.diff(tau) >= 0).all()
    assert (np.diff(B / tau) >= -1e-9).all()


def test_few_requests_cost_mixtures_of_experts_more_than_dense_models():
    def growth(name):
        tau = profile(name).tau([1, 16])
        return tau[1] / tau[0]

    assert min(growth(name) for name in MOE) > 1.5 * max(growth(name) for name in DENSE)


def test_the_growth_of_a_mixture_of_experts_slows_down_once_most_experts_are_touched():
    for name in MOE:
        tau = profile(name).tau([1, 16, 128, 143])
        assert tau[1] - tau[0] > 3 * (tau[3] - tau[2])


def test_linear_attention_makes_a_request_cheaper_than_full_attention_in_a_crowd():
    hybrid, full = profile("qwen3.5-4b").tau([64, 128]), profile("qwen3-4b").tau([64, 128])
    assert hybrid[1] - hybrid[0] < 0.7 * (full[1] - full[0])


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("qwen3.5-35b-a3b-tp2", 35e9, 3e9),
        ("qwen3-30b-a3b-tp2", 30.5e9, 3.3e9),
        ("qwen3.5-4b", 4.2e9, 4.2e9),
        ("qwen3.5-2b", 1.9e9, 1.9e9),
        ("qwen3-4b", 4.0e9, 4.0e9),
    ],
)
def test_the_architecture_adds_up_to_the_published_number_of_parameters(name, total, active):
    model = CONFIGURATIONS[name].model
    dense, expert = dense_parameters(model), model.layers * expert_parameters(model)
    assert dense + model.experts * expert == pytest.approx(total, rel=0.03)
    assert dense + model.active_experts * expert == pytest.approx(active, rel=0.10)


def test_one_request_touches_its_own_experts_and_a_crowd_touches_them_all():
    model = CONFIGURATIONS["qwen3.5-35b-a3b-tp2"].model
    assert distinct_experts(model, [1, 2, 4096]) == pytest.approx([8, 15.75, 256])
    assert (distinct_experts(CONFIGURATIONS["qwen3-4b"].model, [1, 64]) == 0).all()


def test_three_of_four_layers_of_qwen_35_have_linear_attention():
    assert full_layers(CONFIGURATIONS["qwen3.5-35b-a3b-tp2"].model) == 10
    assert full_layers(CONFIGURATIONS["qwen3-4b"].model) == 36


def test_every_configuration_has_the_replicas_that_eight_gpus_make():
    assert [replicas(name) for name in PROFILES] == [4, 4, 8, 8, 8]


def test_an_unknown_profile_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"no profile 'qwen2', only qwen3\.5-35b-a3b-tp2, "):
        profile("qwen2")
