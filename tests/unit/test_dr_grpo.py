"""Dr.GRPO by name, against values computed by hand and against verl's own multi-output path."""

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator, get_adv_estimator_fn
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

from tailsieve_rl.algorithms.advantage import compute_dr_grpo_outcome_advantage
from tailsieve_rl.algorithms.settings import AlgorithmSettings, normalise_algorithm, read_algorithm
from tailsieve_rl.config.blocks import SettingsError

# Two groups of two responses, one output each; rewards 1, 0 | 0.5, -1. Means 0.5 | -0.25.
UIDS = ["a", "a", "b", "b"]
REWARDS = [1.0, 0.0, 0.5, -1.0]
LENGTHS = [2, 3, 1, 3]
BY_HAND = [[0.5, 0.5, 0.0], [-0.5, -0.5, -0.5], [0.75, 0.0, 0.0], [-0.75, -0.75, -0.75]]


def config(**algorithm):
    defaults = {"adv_estimator": "gae", "norm_adv_by_std_in_grpo": True, "gamma": 1.0}
    made = OmegaConf.create({"algorithm": defaults | algorithm})
    OmegaConf.set_struct(made, True)
    return made


def batch(uids, rewards, lengths):
    """A padded batch with each reward on its response's last token, as verl places it."""
    mask = torch.zeros(len(uids), max(lengths))
    scores = torch.zeros(len(uids), max(lengths))
    for row, (reward, length) in enumerate(zip(rewards, lengths, strict=True)):
        mask[row, :length] = 1
        scores[row, length - 1] = reward
    return DataProto.from_dict(
        tensors={"token_level_rewards": scores, "response_mask": mask},
        non_tensors={"uid": np.array(uids, dtype=object)},
    )


def advantages(job, uids, rewards, lengths, outputs=None):
    """What verl's trainer computes under a configuration; `outputs` is each row's (session, output)."""
    outputs = outputs or [(row, 0) for row in range(len(uids))]
    data = compute_advantage_for_multi_trajectories(
        batch(uids, rewards, lengths),
        batch_keys=[f"{uid}_{session}_{output}" for uid, (session, output) in zip(uids, outputs, strict=True)],
        adv_estimator=job.algorithm.adv_estimator,
        norm_adv_by_std_in_grpo=job.algorithm.norm_adv_by_std_in_grpo,
        config=job.algorithm,
    )
    assert torch.equal(data.batch["advantages"], data.batch["returns"])
    return data.batch["advantages"].tolist()


def test_the_registered_estimator_centres_on_the_group_mean_and_does_not_divide():
    data = batch(UIDS, REWARDS, LENGTHS)
    estimator = get_adv_estimator_fn("dr_grpo")
    assert estimator is compute_dr_grpo_outcome_advantage
    found, returns = estimator(
        token_level_rewards=data.batch["token_level_rewards"],
        response_mask=data.batch["response_mask"],
        index=data.non_tensor_batch["uid"],
        config=None,
    )
    assert found.tolist() == BY_HAND
    assert returns.tolist() == BY_HAND


@pytest.mark.parametrize("normalised", [True, False], ids=["tailsieve mode", "verl's own modes"])
def test_the_name_gives_the_same_advantages_under_every_trainer_mode(normalised):
    job = config(adv_estimator="dr_grpo")
    if normalised:
        normalise_algorithm(job)
    assert advantages(job, UIDS, REWARDS, LENGTHS) == BY_HAND


def test_plain_grpo_still_divides_by_the_standard_deviation():
    job = config(adv_estimator="grpo")
    normalise_algorithm(job)
    found = advantages(job, UIDS, REWARDS, LENGTHS)
    assert found[0][0] == pytest.approx(0.5 / (0.5 * 2**0.5), rel=1e-4)


def test_the_name_keeps_verls_path_for_responses_of_several_outputs():
    # Response 0 of the group has two outputs, the last of reward 1; response 1 has one, of reward 0. Mean 0.5, not 1/3.
    job = config(adv_estimator="dr_grpo")
    normalise_algorithm(job)
    found = advantages(job, ["a", "a", "a"], [0.0, 1.0, 0.0], [1, 2, 1], outputs=[(0, 0), (0, 1), (1, 0)])
    assert found == [[0.5, 0.0], [0.5, 0.5], [-0.5, 0.0]]


def test_a_group_of_equal_rewards_teaches_nothing():
    job = config(adv_estimator="dr_grpo")
    normalise_algorithm(job)
    assert advantages(job, ["a"] * 3, [0.3] * 3, [1, 1, 1]) == [[0.0]] * 3


def test_the_name_wins_over_the_flag_of_verls_default():
    job = config(adv_estimator="dr_grpo", norm_adv_by_std_in_grpo=True)
    normalise_algorithm(job)
    assert job.algorithm.adv_estimator == AdvantageEstimator.GRPO
    assert job.algorithm.norm_adv_by_std_in_grpo is False
    assert read_algorithm(job) == AlgorithmSettings("grpo", False)


@pytest.mark.parametrize("by_std", [True, False])
@pytest.mark.parametrize("name", ["gae", "grpo", "rloo"])
def test_verls_own_estimators_stay_as_they_are(name, by_std):
    job = config(adv_estimator=name, norm_adv_by_std_in_grpo=by_std)
    normalise_algorithm(job)
    assert job == config(adv_estimator=name, norm_adv_by_std_in_grpo=by_std)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"adv_estimator": "dr-grpo"}, r"algorithm.adv_estimator='dr-grpo': must be one of dr_grpo, gae, .*grpo"),
        ({"adv_estimator": None}, r"algorithm.adv_estimator=None: must be one of"),
        ({"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": "no"}, r"norm_adv_by_std_in_grpo='no': must be true"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_key_and_value(algorithm, message):
    with pytest.raises(SettingsError, match=message):
        normalise_algorithm(config(**algorithm))
