"""The made checkpoints speak the chain, as surely as they were told; transformers reads the targets."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tailsieve_rl.checkpoints.__main__ import main
from tailsieve_rl.checkpoints.chain import reading, successors, walk
from tailsieve_rl.checkpoints.qwen3_5 import write_qwen3_5_mtp
from tailsieve_rl.checkpoints.tokenizer import BYTES, VOCABULARY
from tailsieve_rl.checkpoints.weights import TINY, Size
from tailsieve_rl.input_error import InputError

TEXT = walk(np.arange(5, BYTES, 37), 40)


def test_the_bytes_are_one_cycle_and_special_tokens_lead_into_it():
    following = successors()
    assert sorted(walk(np.array([7]), BYTES)[0]) == list(range(BYTES)) and following[BYTES:].max() < BYTES


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.8, 1.0])
def test_a_drafter_reads_the_given_share_right_and_is_wrong_after_the_rest(acceptance):
    following, read = successors(), reading(acceptance)
    right = following[read[:BYTES]] == following[:BYTES]
    assert right.sum() == round(acceptance * BYTES)
    assert (following[read[:BYTES]][~right] == np.arange(BYTES)[~right]).all()


def probabilities(folder) -> np.ndarray:
    """Of each token's successor along the chain."""
    model, found = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not (found["missing_keys"] or found["unexpected_keys"] or found["mismatched_keys"])
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(folder)) == VOCABULARY
    with torch.no_grad():
        logits = model(torch.from_numpy(TEXT)).logits
    assert (logits.argmax(-1).numpy() == successors()[TEXT]).all()
    following = torch.from_numpy(successors()[TEXT]).unsqueeze(-1)
    return logits.softmax(-1).gather(-1, following).numpy()


@pytest.mark.parametrize(("kind", "certainty"), [("qwen3", 0.9), ("qwen3_5-mtp", 0.5)])
def test_a_target_gives_each_successor_its_probability_and_the_context_moves_it(tmp_path, kind, certainty, capsys):
    assert main([kind, "--out", str(tmp_path), "--certainty", str(certainty)]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path)
    found = probabilities(tmp_path)
    assert found.mean() == pytest.approx(certainty, abs=0.03) and 0.01 < found.std() < 0.2


def test_a_dflash_drafter_is_written_for_its_target_only(tmp_path, capsys):
    target, drafter = str(tmp_path / "target"), str(tmp_path / "drafter")
    assert main(["qwen3", "--out", target]) == 0
    assert main(["dflash", "--out", drafter, "--target", target, "--acceptance", "0.9", "--depth", "4"]) == 0
    config = json.loads((tmp_path / "drafter" / "config.json").read_text())
    assert config["block_size"] == 5 and config["dflash_config"]["target_layer_ids"] == [0, TINY.layers - 1]
    assert main(["dflash", "--out", drafter, "--target", drafter]) == 2
    assert "must be a made Qwen3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"acceptance": 1.5}, "acceptance = 1.5 must lie between 0 and 1"),
        ({"acceptance": 0.5, "certainty": 1.0}, "certainty = 1 must lie between"),
        ({"acceptance": 0.5, "size": Size(layers=3, hidden=288, intermediate=64, spread=0.02)}, "layers = 3 must be"),
        ({"acceptance": 0.5, "size": Size(layers=4, hidden=64, intermediate=64, spread=0.02)}, "hidden = 64 must be"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        write_qwen3_5_mtp(tmp_path / "model", **arguments)
