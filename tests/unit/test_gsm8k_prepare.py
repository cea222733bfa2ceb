"""examples/gsm8k: real prompts in the paper's form, and a random model whose vocabulary is its tokenizer's."""

import importlib.util
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from transformers import AutoConfig, AutoTokenizer

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "gsm8k"

spec = importlib.util.spec_from_file_location("gsm8k_prepare", FOLDER / "prepare.py")
prepare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prepare)


def write_problems(path: Path, *problems: tuple[str, str]) -> Path:
    path.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in problems))
    return path


def main(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["prepare.py", *map(str, arguments)])
    prepare.main()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    out = tmp_path_factory.mktemp("gsm8k")
    prepare.prepare(out, out / "model", prepare.SAMPLE_TRAIN, prepare.SAMPLE_TEST)
    return out


def test_the_shipped_sample_becomes_prompts_in_verls_format(prepared):
    for file, split, count in (("train", "train", 256), ("val", "test", 64)):
        table = pq.read_table(prepared / f"{file}.parquet")
        assert table.column_names == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
        rows = table.to_pylist()
        assert [row["extra_info"] for row in rows] == [{"split": split, "index": i} for i in range(count)]
        assert all(len(row["prompt"]) == 1 and row["prompt"][0]["role"] == "user" for row in rows)
        assert all(float(row["reward_model"]["ground_truth"]) is not None for row in rows)
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": "18"}  # Janet's ducks


def test_the_message_is_the_question_then_our_form_then_the_papers_instruction(prepared):
    message = pq.read_table(prepared / "train.parquet").to_pylist()[0]["prompt"][0]["content"]
    assert message.startswith("Natalia sold clips to 48 of her friends in April")
    assert "\\boxed{}" in message
    assert message.endswith(
        "After <END>, stop immediately. Do not write any words, punctuation, newline, or explanation after <END>."
    )


def test_the_model_and_its_tokenizer_fit_each_other(prepared):
    tokenizer = AutoTokenizer.from_pretrained(prepared / "model")
    config = AutoConfig.from_pretrained(prepared / "model")
    assert config.vocab_size == len(tokenizer) <= 2048
    assert (config.hidden_size, config.num_hidden_layers) == (128, 2)
    assert (config.eos_token_id, config.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)
    text = "naïve 12 €\n\\boxed{5}<END>\x07"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], add_generation_prompt=True, tokenize=False
    )
    assert chat == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    ids = tokenizer(chat)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "user\nHi\nassistant\n"


def test_the_same_command_gives_the_same_files(prepared, tmp_path):
    prepare.prepare(tmp_path, tmp_path / "model", prepare.SAMPLE_TRAIN, prepare.SAMPLE_TEST)
    files = sorted(path.relative_to(prepared) for path in prepared.rglob("*") if path.is_file())
    assert len(files) >= 6
    assert all((tmp_path / file).read_bytes() == (prepared / file).read_bytes() for file in files)


def test_long_prompts_are_dropped_counted_and_keep_the_others_numbers(tmp_path, monkeypatch, capsys):
    train = write_problems(tmp_path / "a.jsonl", ("one", "#### 1"), ("word " * 600, "#### 2"), ("three", "#### 3"))
    main(monkeypatch, "--out", tmp_path / "out", "--model-out", tmp_path / "elsewhere", "--train", train)
    out = capsys.readouterr().out
    assert "2 prompts of" in out and "1 dropped for more than 512 tokens" in out
    rows = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    assert [row["extra_info"]["index"] for row in rows] == [0, 2]
    assert (tmp_path / "elsewhere" / "model.safetensors").is_file() and not (tmp_path / "out" / "model").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"question": "?", "answer": "six"}', "line 1: the answer does not end in '#### NUMBER'"),
        ('{"question": "?"}', "line 1: needs a column answer, has question"),
        ("question", "line 1: is no JSON"),
        ("", "no prompt of at most 512 tokens is left of 0"),
    ],
)
def test_bad_input_ends_with_one_clear_line(tmp_path, monkeypatch, capsys, lines, message):
    (tmp_path / "a.jsonl").write_text(lines)
    with pytest.raises(SystemExit) as refused:
        main(monkeypatch, "--out", tmp_path / "out", "--train", tmp_path / "a.jsonl")
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


def test_the_shipped_problems_carry_their_licence():
    licence = (FOLDER / "LICENSE").read_text()
    assert licence.startswith("MIT License") and "Copyright (c) 2021 OpenAI" in licence
