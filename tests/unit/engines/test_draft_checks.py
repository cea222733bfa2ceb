"""What is wrong with speculation is said in one line before an engine starts, from the checkpoints' files alone."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tailsieve_rl.engines.vllm.draft_checks import check
from tailsieve_rl.input_error import InputError

TARGET = {"num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100}
DFLASH = {
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "vocab_size": 100,
    "block_size": 8,
    "dflash_config": {"mask_token_id": 99, "target_layer_ids": [0, 3]},
}


def write(folder: Path, config: dict, tensors: dict[str, list[int]], sharded: bool = False) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header = json.dumps({name: {"dtype": "F32", "shape": shape} for name, shape in tensors.items()}).encode()
    file = "model-00001-of-00001.safetensors" if sharded else "model.safetensors"
    (folder / file).write_bytes(struct.pack("<Q", len(header)) + header)
    if sharded:
        index = {"weight_map": dict.fromkeys(tensors, file)}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return str(folder)


@pytest.fixture
def target(tmp_path):
    return write(
        tmp_path / "target", TARGET, {"lm_head.weight": [100, 64], "model.layers.3.mlp.up_proj.weight": [1, 1]}
    )


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("name", ["mtp.fc.weight", "model.layers.4.eh_proj.weight"])
def test_mtp_weights_are_found_whatever_they_are_called(tmp_path, name, sharded):
    nested = {"text_config": TARGET, "vocab_size": 7}
    model = write(tmp_path / "model", nested, {"lm_head.weight": [100, 64], name: [64, 128]}, sharded)
    check("mtp", model, None, largest=3, depths=[0, 3])


def test_a_drafter_that_fits_is_accepted(tmp_path, target):
    drafter = write(tmp_path / "drafter", DFLASH, {"fc.weight": [64, 128]})
    check("dflash", target, drafter, largest=7)
    check("draft_model", target, drafter, largest=7)
    check("ngram", target, None, largest=7)


def refusal(*arguments, **keywords) -> str:
    with pytest.raises(InputError) as error:
        check(*arguments, **keywords)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_model_without_mtp_weights_is_refused(target):
    assert f"{target} has none: of its 2 tensors" in refusal("mtp", target, None, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 32}, "hidden states of size 32, those of .* have 64"),
        ({"vocab_size": 90}, "vocab_size = 90, that of .* is 100"),
        ({"dflash_config": {"mask_token_id": 99, "target_layer_ids": [0, 4, 9]}}, "target_layer_ids 4, 9 .* of the 4"),
        ({"dflash_config": {"mask_token_id": 99, "target_layer_ids": [0, 1, 3]}}, "takes 128 .* give 192"),
        ({"dflash_config": {}}, "no DFlash drafter"),
        ({"block_size": 4}, "num_speculative_tokens = 5 must be at most 3"),
    ],
)
def test_a_dflash_drafter_that_does_not_fit_is_refused(tmp_path, target, change, message):
    drafter = write(tmp_path / "drafter", DFLASH | change, {"fc.weight": [64, 128]})
    with pytest.raises(InputError, match=message):
        check("dflash", target, drafter, largest=5)


def test_ngrams_are_refused_where_vllm_would_go_on_from_a_wrong_state(tmp_path):
    layers = {"layer_types": ["linear_attention", "full_attention"]}
    model = write(tmp_path / "model", TARGET | layers, {"mtp.fc.weight": [64, 128]})
    assert "layers of linear_attention" in refusal("ngram", model, None, 3)
    check("mtp", model, None, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "suffix"}, "must be one of mtp, dflash, draft_model, ngram"),
        ({"largest": 0}, "num_speculative_tokens = 0 must be 1 or more"),
        ({"depths": [0, 4]}, "draft depth = 4 must lie between 0 and the largest, num_speculative_tokens = 3"),
        ({"depths": [-1]}, "draft depth = -1 must lie"),
        ({"data_parallel_size": 2}, "data_parallel_size = 2 must be 1"),
        ({"method": "mtp", "load_format": "dummy"}, "load_format = dummy must be auto with method = mtp"),
        ({"method": "dflash"}, "dflash needs the path of its drafter"),
        ({"drafter": "some/where"}, "ngram takes no drafter, but got some/where"),
        ({"seeded": True, "method": "draft_model", "drafter": "a/b", "sampled_drafts": True}, "seed"),
        ({"model": "/no/such/folder"}, "/no/such/folder: no such folder"),
    ],
)
def test_what_no_checkpoint_could_mend_is_refused(target, changes, message):
    arguments = {"method": "ngram", "model": target, "drafter": None, "largest": 3}
    with pytest.raises(InputError, match=message):
        check(**(arguments | changes))


def test_a_checkpoint_that_is_not_here_yet_is_not_an_error_but_is_logged(caplog):
    check("mtp", "some/model", None, 3)
    assert "some/model is not checked" in caplog.text


def test_the_checks_need_neither_torch_nor_vllm():
    code = "import sys, tailsieve_rl.engines.vllm.draft_checks; print(*{'torch', 'verl', 'vllm'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
