"""`tailsieve data`: rows of published data sets become prompts in verl's format with the paper's templates."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tailsieve_rl.cli import main
from tailsieve_rl.data import catalogue, sources

DECLARATION = "def double(x: int) -> int:"
PAPERS_END = (
    "<END> After <END>, stop immediately. Do not write any words, punctuation, newline, or explanation after <END>."
)
"""The end of the mathematics template as A.1 prints it; its line breaks are lost there."""
PAPERS_CODE = (
    "Solve the coding problem below. Provide your reasoning and explanation, including the key algorithm, its "
    "correctness, important edge cases, and its time and space complexity. Then provide exactly one complete Python "
    "function. After the function, write <END> and stop immediately. Do not repeat or revise the answer. Problem: "
    "Double {x}. Required function: def double(x: int) -> int: Specification: Twice x."
)


def kodcode(**changes: Any) -> dict[str, Any]:
    info = {"function_name": "double", "function_declaration": DECLARATION, "docstring": "Twice x."}
    row = {"question": "Double {x}.", "test": "def test_double():\n    assert double(2) == 4", "test_info": [info]}
    return {**row, **changes}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def written(tmp_path: Path, name: str, *rows: dict[str, Any], options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["data", name, "--file", str(file), "--out", str(tmp_path / "out"), *options]) == 0
    [path] = (tmp_path / "out").glob("*.parquet")
    return rows_of(path)


def refused(capsys: pytest.CaptureFixture[str], out: Path, *arguments: object) -> str:
    assert main(["data", *map(str, arguments), "--out", str(out)]) == 2
    assert not out.exists(), "something was written"
    [line] = capsys.readouterr().err.splitlines()
    return line.removeprefix("tailsieve: error: ")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One that makes a token of each character, behind a template that knows `enable_thinking`."""
    letters = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    template = (
        "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if enable_thinking %}{{ 'think' * 999 }}{% endif %}"
    )
    path = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(tokenizer_object=letters, chat_template=template).save_pretrained(path)
    return str(path)


def test_a_mathematical_prompt_is_one_message_that_ends_as_the_papers(tmp_path):
    [row] = written(tmp_path, "deepscaler", {"problem": "1 + {1}?", "answer": "\\frac{4}{2}", "solution": "..."})
    [message] = row["prompt"]
    assert message["role"] == "user" and message["content"].startswith("1 + {1}?\n\n")
    assert " ".join(message["content"].split()).endswith(PAPERS_END)
    assert "\\boxed{}" in message["content"]
    assert (row["data_source"], row["ability"]) == ("tailsieve/deepscaler", "math")
    assert row["reward_model"] == {"style": "rule", "ground_truth": "\\frac{4}{2}"}
    assert row["extra_info"] == {"split": "train", "index": 0}


def test_a_coding_prompt_is_the_papers_and_keeps_the_tests(tmp_path):
    [row] = written(tmp_path, "kodcode", kodcode())
    system, user = row["prompt"]
    assert system == {"role": "system", "content": "You are an expert Python programmer."}
    assert " ".join(user["content"].split()) == PAPERS_CODE
    assert row["ability"] == "code" and "assert double(2) == 4" in row["reward_model"]["ground_truth"]


@pytest.mark.parametrize("docstring", [None, ""])
def test_a_function_may_have_no_specification(tmp_path, docstring):
    [row] = written(
        tmp_path, "kodcode", kodcode(test_info=[{"function_declaration": DECLARATION, "docstring": docstring}])
    )
    assert row["prompt"][1]["content"].endswith(f"{DECLARATION}\n\nSpecification:")


@pytest.mark.parametrize(
    ("name", "row", "truth"),
    [
        ("gsm8k", {"question": "?", "answer": "6\n#### 6"}, "6"),
        ("gsm8k", {"question": "?", "answer": "#### 1,234,567"}, "1234567"),
        ("gsm8k", {"question": "?", "answer": "#### -2.50 "}, "-2.50"),
        ("math500", {"problem": "?", "answer": " \\pi "}, "\\pi"),
        ("math500", {"problem": "?", "answer": 4.0}, "4"),
        ("aime24", {"problem": "?", "answer": "033"}, "33"),
        ("aime25", {"prompt": "?", "answer": 0}, "0"),
    ],
)
def test_the_truth_is_what_the_answer_says(tmp_path, name, row, truth):
    [made] = written(tmp_path, name, row, options=("--split", "test"))
    assert made["reward_model"]["ground_truth"] == truth


def test_an_instruction_behind_the_question_is_not_given_twice(tmp_path):
    question = "1 + 1?\nPlease reason step by step, and put your final answer within \\boxed{}."
    [row] = written(tmp_path, "aime25", {"prompt": question, "answer": 2})
    assert row["prompt"][0]["content"].startswith("1 + 1?\n\nReason step by step")


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_every_kind_of_file_gives_the_same_prompts(tmp_path, suffix):
    problems = [{"problem": "1, 2\nor 3?", "answer": "7"}, {"problem": "é?", "answer": "8"}]
    file = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(problems), file)
    elif suffix == "csv":
        file.write_text('problem,answer\n"1, 2\nor 3?",7\né?,8\n')
    else:
        file.write_text(json.dumps(problems) if suffix == "json" else "\n\n".join(map(json.dumps, problems)))
    assert main(["data", "math500", "--file", str(file), "--out", str(tmp_path)]) == 0
    made = rows_of(tmp_path / "math500_test.parquet")
    assert [r["prompt"][0]["content"].partition("\n\n")[0] for r in made] == ["1, 2\nor 3?", "é?"]
    assert [r["reward_model"]["ground_truth"] for r in made] == ["7", "8"]


def test_long_prompts_of_a_train_split_are_dropped_counted_and_keep_the_others_numbers(tmp_path, capsys, tokenizer):
    rows = [{"problem": text, "answer": "1"} for text in ("a", "long " * 100, "b")]
    made = written(tmp_path, "deepscaler", *rows, options=("--tokenizer", tokenizer))
    assert [row["extra_info"]["index"] for row in made] == [0, 2]
    out = capsys.readouterr().out
    assert "2 prompts of" in out and "1 dropped for more than 512 tokens" in out
    length = len(made[0]["prompt"][0]["content"])
    assert f"prompt tokens: P50 {length}, P90 {length}, P99 {length}, longest {length}" in out


def test_the_longest_prompt_is_the_users_to_set_and_the_file_says_what_was_done(tmp_path, capsys, tokenizer):
    rows = [{"problem": text, "answer": "1"} for text in ("a", "ab")]
    shortest = len(written(tmp_path, "math500", *rows)[0]["prompt"][0]["content"])
    options = ("--tokenizer", tokenizer, "--max-prompt-tokens", str(shortest))
    assert len(written(tmp_path, "math500", *rows, options=options)) == 1
    made = json.loads(pq.read_schema(tmp_path / "out" / "math500_test.parquet").metadata[b"tailsieve"])
    assert (made["data_set"], made["split"], made["prompts"], made["too_long"]) == ("math500", "test", 1, 1)
    assert made["max_prompt_tokens"] == shortest and made["source"].endswith("rows.jsonl")
    assert "is ours" in made["template"]


def test_nothing_is_dropped_without_a_tokenizer_nor_from_a_test_split_and_it_is_said(tmp_path, capsys, tokenizer):
    row = {"problem": "long " * 200, "answer": "1"}
    assert written(tmp_path, "deepscaler", row)
    assert "none was dropped for its length: without --tokenizer, tokens are not counted" in capsys.readouterr().out
    (tmp_path / "out" / "deepscaler_train.parquet").unlink()
    assert written(tmp_path, "math500", row, options=("--tokenizer", tokenizer))
    assert "a test split stays whole" in capsys.readouterr().out


def test_rows_of_deepscaler_that_have_no_answer_are_left_out_and_named(tmp_path, capsys):
    rows = [{"problem": "?", "answer": answer} for answer in ("1", None, "2", " ")]
    assert [row["extra_info"]["index"] for row in written(tmp_path, "deepscaler", *rows)] == [0, 2]
    assert "2 left out that have no answer: line 2, line 4" in capsys.readouterr().out


GOOD = '{"problem": "?", "answer": "1"}\n'


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("math500", "a.jsonl", GOOD + '{"problem": "?"}\n', "a.jsonl, line 2: needs a column answer, has problem"),
        ("math500", "a.jsonl", GOOD + '{"answer": "1"}\n', "a.jsonl, line 2: needs a column problem or question"),
        (
            "math500",
            "a.jsonl",
            GOOD + '{"problem": " ", "answer": "1"}',
            "a.jsonl, line 2: problem is empty or no text",
        ),
        ("math500", "a.jsonl", GOOD + '{"problem": "?", "answer": null}', "a.jsonl, line 2: the answer is empty"),
        ("math500", "a.jsonl", GOOD + '{"problem": "?", "answer": [1]}', "line 2: answer must be a text or a number"),
        ("math500", "a.jsonl", GOOD + "\n{", "a.jsonl, line 3: is no JSON"),
        ("math500", "a.jsonl", GOOD + "[1]", "a.jsonl, line 2: must be an object, is of type list"),
        ("math500", "a.jsonl", "", "a.jsonl: no prompt is left of 0"),
        ("math500", "a.json", "{}", "a.json: must be a list of objects, is of type dict"),
        ("math500", "a.json", '[{"problem": "?", "answer": "1"}, 2]', "a.json, item 2: must be an object"),
        ("math500", "a.csv", "problem,answer\n?,1\n?\n", "a.csv, line 3: the answer is empty"),
        ("math500", "a.parquet", "text", "a.parquet: is no parquet"),
        ("math500", "a.txt", "text", "a.txt: must be a file of .jsonl, .json, .parquet, .csv"),
        ("aime24", "a.jsonl", '{"problem": "?", "answer": "1000"}', "line 1: answer='1000': must be an integer from 0"),
        ("aime24", "a.jsonl", '{"problem": "?", "answer": null}', "line 1: the answer is empty"),
        ("kodcode", "a.jsonl", json.dumps(kodcode(test="")), "line 1: test is empty or no text"),
        ("kodcode", "a.jsonl", json.dumps(kodcode(test_info=[])), "line 1: test_info must hold a function"),
        ("kodcode", "a.jsonl", json.dumps(kodcode(test_info="{")), "line 1: test_info is no JSON"),
        ("kodcode", "a.jsonl", json.dumps(kodcode(test_info=[{}])), "needs a column test_info.function_declaration"),
    ],
)
def test_a_malformed_row_is_refused_with_its_place_and_nothing_is_written(tmp_path, capsys, name, file, text, message):
    (tmp_path / file).write_text(text)
    line = refused(capsys, tmp_path / "out", name, "--file", tmp_path / file)
    assert line.startswith(str(tmp_path / file)) and message in line


def test_gsm8k_needs_its_marks(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"question": "?", "answer": "six"}')
    line = refused(capsys, tmp_path / "out", "gsm8k", "--split", "test", "--file", tmp_path / "a.jsonl")
    assert line.endswith("a.jsonl, line 1: the answer does not end in '#### NUMBER'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("imagenet",), "data set 'imagenet': must be one of deepscaler, kodcode, gsm8k, math500, aime24, aime25"),
        (("gsm8k", "--split", "dev"), "--split dev: gsm8k has train, test"),
        (("gsm8k", "--file", "a.jsonl"), "--file: say which split of gsm8k it is, --split train or test"),
        (("math500", "--file", "/nowhere.json"), "/nowhere.json: No such file or directory"),
        (("math500", "--max-prompt-tokens", "0"), "--max-prompt-tokens 0: must be 1 or more"),
        (("math500", "--max-prompt-tokens", "9"), "--max-prompt-tokens 9: needs --tokenizer"),
        (("math500", "--tokenizer", "/nowhere"), "/nowhere: no such folder"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(tmp_path, capsys, arguments, message):
    assert refused(capsys, tmp_path / "out", *arguments).startswith(message)


def test_a_split_that_is_malformed_keeps_the_others_from_being_written(tmp_path, capsys, monkeypatch):
    good, bad = {"question": "?", "answer": "#### 1"}, {"question": "?", "answer": "1"}
    monkeypatch.setitem(catalogue.CATALOGUE, "gsm8k", replace(_hub_in(tmp_path, train=good, test=bad), name="gsm8k"))
    line = refused(capsys, tmp_path / "out", "gsm8k")
    assert line.endswith("row 1: the answer does not end in '#### NUMBER'")


def test_the_hub_is_read_by_the_library_that_knows_it(tmp_path, monkeypatch):
    """A folder stands in for a repository: `datasets` loads both alike."""
    row = {"question": "1 + 1?", "answer": "#### 2"}
    data_set = _hub_in(tmp_path, train=row, test=row)
    assert list(sources.hub_rows(data_set, "test")) == [("row 1", row)]
    monkeypatch.setitem(catalogue.CATALOGUE, "gsm8k", data_set)
    assert main(["data", "gsm8k", "--out", str(tmp_path / "out")]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"gsm8k_train.parquet", "gsm8k_test.parquet"}


def _hub_in(tmp_path: Path, **splits: dict[str, Any]) -> catalogue.DataSet:
    folder = tmp_path / "hub"
    folder.mkdir()
    for split, row in splits.items():
        (folder / f"{split}.jsonl").write_text(json.dumps(row))
    return replace(catalogue.CATALOGUE["gsm8k"], hub=str(folder), config=None)


def test_a_hub_that_cannot_be_reached_is_one_line_that_says_what_else_would_do(tmp_path, capsys):
    line = refused(capsys, tmp_path / "out", "math500")  # tests are offline
    assert line.startswith("HuggingFaceH4/MATH-500: cannot be fetched from the hub (")
    assert line.endswith("; give the file with --file")
