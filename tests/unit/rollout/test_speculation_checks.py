"""Speculation that a configuration shows to be impossible is refused before anything starts."""

from pathlib import Path

import pytest
import verl
from hydra import compose, initialize_config_dir

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.rollout.checks import check_config
from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint, save_profile

CONFIGS = str(Path(verl.__file__).parent / "trainer" / "config")
MTP = "++trainer.v1.tailsieve.speculation={max_depth:3,tail:{method:mtp},bulk:{method:mtp}}"
NGRAM = "++trainer.v1.tailsieve.speculation={max_depth:3,tail:{method:ngram}}"
VLLM = (
    "actor_rollout_ref.rollout.name=vllm",
    "actor_rollout_ref.model.path=some/model",
    "actor_rollout_ref.rollout.load_format=auto",
)
EMULATED = (
    "actor_rollout_ref.rollout.name=emulated",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "data.max_response_length=512",
    "++trainer.v1.tailsieve.replay_workload={name:math,divisor:32}",
)


def _check(*overrides: str) -> None:
    base = ["trainer.use_v1=true", "data.train_batch_size=64", "trainer.n_gpus_per_node=8"]
    base += ["actor_rollout_ref.rollout.n=8", "actor_rollout_ref.rollout.tensor_model_parallel_size=1"]
    with initialize_config_dir(CONFIGS, version_base=None):
        check_config(compose("ppo_trainer", [*base, *overrides]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("actor_rollout_ref.rollout.load_format=dummy", MTP),
            "speculation='mtp': rollout.load_format = dummy must be auto",
        ),
        (
            ("actor_rollout_ref.rollout.data_parallel_size=2", MTP),
            "speculation='mtp': rollout.data_parallel_size = 2 must be 1",
        ),
        (
            ("++actor_rollout_ref.rollout.engine_kwargs.vllm.speculative_config={method:mtp}", MTP),
            "speculative_config='...': trainer.v1.tailsieve.speculation says what drafts",
        ),
        (
            ("actor_rollout_ref.model.mtp.enable=true", "actor_rollout_ref.model.mtp.enable_rollout=true", NGRAM),
            "mtp.enable_rollout=True: verl drafts with MTP, trainer.v1.tailsieve.speculation with ngram",
        ),
    ],
)
def test_drafts_that_vllm_engines_cannot_make_are_refused(overrides, message):
    with pytest.raises(SettingsError) as refused:
        _check(*VLLM, *overrides)
    assert message in str(refused.value)


def test_drafts_that_the_emulated_profile_lacks_are_refused():
    with pytest.raises(SettingsError, match=r"max_depth=3: emulated profile qwen3.5-4b has draft depths \(0,\)"):
        _check(*EMULATED, MTP)
    _check(*EMULATED, MTP, "++actor_rollout_ref.rollout.engine_kwargs.emulated={acceptance:0.8,max_depth:3}")


def test_a_decode_profile_without_the_depths_that_engines_draft_is_refused(tmp_path):
    path = tmp_path / "plain.json"
    save_profile(DecodeModel((DecodePoint(1, 0.01), DecodePoint(1, 0.008, 2))), path)
    file = f"++trainer.v1.tailsieve.decode_model={{source:file,path:{path}}}"
    with pytest.raises(SettingsError, match=r"has draft depths \(0, 2\), and engines draft 0 to 3"):
        _check(*VLLM, NGRAM, file)
