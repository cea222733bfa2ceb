"""Lengths from verl's rollout dumps; the tokenizer's tokens are bytes."""

import json

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tailsieve_rl.simulation.length_table import TraceError
from tailsieve_rl.simulation.rollout_dumps import END, read_dumps, read_measured

from .tables import write_csv


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return str(folder)


def line(prompt, output, step, uid=None):
    entry = {"input": prompt, "output": output, "gts": None, "score": 0.5, "step": step}
    return json.dumps({**entry, "uid": uid} if uid else entry)


def write(path, *lines):
    path.write_text("".join(f"{entry}\n" for entry in lines), encoding="utf-8")
    return path


def test_a_response_is_as_long_as_its_text_and_its_end(tmp_path, tokenizer):
    file = write(tmp_path / "1.jsonl", line("a", "four", 1, "f0_0_0"), line("a", "", 1, "f0_1_0"))
    assert read_dumps(file, tokenizer).tokens.tolist() == [4 + END, END]


def test_outputs_of_one_response_add_up(tmp_path, tokenizer):
    lines = [
        line("a", "12", 1, "f0_0_0"),
        line("a", "1", 1, "f0_1_0"),
        line("a and more", "345", 1, "f0_0_1"),
        line("a", "123456", 2, "f1_0_0"),
    ]
    table = read_dumps(write(tmp_path / "1.jsonl", *lines), tokenizer)
    assert table.tokens.tolist() == [5 + 2 * END, 1 + END, 6 + END]
    assert table.prompts == 1, "an output's input does not make a prompt of its own"


def test_a_prompt_is_known_by_its_text_and_its_visits_are_checkpoints(tmp_path, tokenizer):
    write(tmp_path / "2.jsonl", line("b", "x", 2, "0a_0_0"), line("c", "xx", 2, "0b_0_0"))
    write(tmp_path / "10.jsonl", line("a", "x" * 7, 10, "0c_0_0"), line("b", "x" * 8, 10, "0d_0_0"))
    write(tmp_path / "notes.jsonl", "not a dump")
    table = read_dumps(tmp_path, tokenizer)
    assert table.prompt.tolist() == [0, 1, 2, 0]
    assert [table.checkpoints[i] for i in table.checkpoint] == ["1", "1", "1", "2"]
    assert (table.tokens - END).tolist() == [1, 2, 7, 8]
    assert table.groups == 2


def test_what_verl_padded_the_batch_with_is_left_out(tmp_path, tokenizer):
    lines = [line("a", "x", 1, "f0_0_0"), line("", "", 1, "pad00ff_0_0"), line("", "", 1, "pad00ff_1_0")]
    table = read_dumps(write(tmp_path / "1.jsonl", *lines), tokenizer)
    assert (table.prompts, len(table.tokens), table.groups) == (1, 1, 1)


def test_without_a_uid_each_line_is_a_response(tmp_path, tokenizer):
    file = write(tmp_path / "1.jsonl", line("a", "x", 1), line("a", "xx", 1), line("b", "x", 1))
    table = read_dumps(file, tokenizer)
    assert table.prompt.tolist() == [0, 0, 1] and (table.tokens - END).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", r"1\.jsonl, line 2 is not JSON: Expecting property name"),
        ("[1]", r"1\.jsonl, line 2: must be an object with the keys input, output and step, not \[1\]"),
        ('{"input": "a", "step": 1}', r"1\.jsonl, line 2: output = None must be text"),
        ('{"input": 3, "output": "x", "step": 1}', r"1\.jsonl, line 2: input = 3 must be text"),
        ('{"input": "a", "output": "x", "step": "one"}', r"1\.jsonl, line 2: step = 'one' must be a whole number"),
    ],
)
def test_a_line_that_verl_does_not_write_is_refused_with_its_place(tmp_path, tokenizer, bad, says):
    with pytest.raises(TraceError, match=says):
        read_dumps(write(tmp_path / "1.jsonl", line("a", "x", 1), bad), tokenizer)


def test_a_dump_needs_a_tokenizer(tmp_path):
    file = write(tmp_path / "1.jsonl", line("a", "x", 1))
    with pytest.raises(TraceError, match="hold text only; --tokenizer PATH must name"):
        read_dumps(file, None)
    with pytest.raises(TraceError, match=r"--tokenizer .*/nowhere must be a folder with a Hugging Face tokenizer"):
        read_dumps(file, str(tmp_path / "nowhere"))


def test_a_place_without_dumps_is_refused(tmp_path, tokenizer):
    with pytest.raises(TraceError, match=r"has no <step>\.jsonl files"):
        read_dumps(tmp_path, tokenizer)
    with pytest.raises(TraceError, match="is neither a file nor a folder"):
        read_dumps(tmp_path / "gone.jsonl", tokenizer)
    with pytest.raises(TraceError, match="has no responses"):
        read_dumps(write(tmp_path / "1.jsonl"), tokenizer)


def test_what_a_job_left_is_read_by_its_kind(tmp_path, tokenizer):
    dump = write(tmp_path / "1.jsonl", line("a", "x", 1))
    table = write_csv(tmp_path / "t.csv", ["a,1,5"])
    assert [read_measured(path, tokenizer).tokens.tolist() for path in (dump, tmp_path, table)] == [[2], [2], [5]]
