"""What is wrong with a command line is said in one line, with exit code 2, before an engine starts."""

import json

import pytest

from tailsieve_rl import cli
from tailsieve_rl.calibration import started

URL = ("--url", "http://127.0.0.1:9")


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 300}}))
    return folder


@pytest.fixture
def refused(capsys, monkeypatch):
    """The only line on standard error of a command that must be refused."""

    def start(*_):
        raise AssertionError("an engine would start")

    monkeypatch.setattr(started, "prepare", start)

    def run(*arguments):
        try:
            code = cli.main(["calibrate", *map(str, arguments)])
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        lines = captured.err.splitlines()
        assert (code, captured.out, len(lines)) == (2, "", 1)
        assert lines[0].startswith("tailsieve: error: ")
        return lines[0]

    return run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--batch-sizes", "2,4"], "--batch-sizes must contain 1"),
        (["--batch-sizes", "1,2,2"], "2 is given twice"),
        (["--batch-sizes", "0,1"], "0 must be 1 or more"),
        (["--batch-sizes", "1;2"], "'1;2'"),
        (["--batch-sizes", ""], "''"),
        (["--tokens", "285"], "--tokens = 285, after a prompt of 16, is beyond the 300 tokens of the model"),
        (["--tokens", "1"], "--tokens = 1 must be 2 or more"),
        (["--tokens", "many"], "--tokens"),
        (["--repeats", "0"], "--repeats = 0"),
        (["--prompt-tokens", "0"], "--prompt-tokens = 0"),
        (["--draft-depths", "0,2"], "needs --speculative"),
        (["--draft-depths", "-1"], "-1"),
        (["--speculative", '{"method": "ngram"}'], "needs --draft-depths"),
        (["--speculative", "ngram"], "not JSON"),
        (["--speculative", "[1]"], "object"),
        (["--speculative", '{"num_speculative_tokens": 2}', "--draft-depths", "2"], "num_speculative_tokens"),
        (["--prompts", "no/such/file"], "no/such/file"),
        (["--", "--port=80"], "--port"),
        ([*URL, "--", "--dtype", "float32"], "not for --url"),
        ([*URL, "--draft-depths", "0,2"], "--draft-depths"),
        (["--url", "localhost:80"], "http://host:port"),
    ],
)
def test_bad_input_is_named(refused, model, tmp_path, arguments, says):
    assert says in refused("--model", model, "--out", tmp_path / "p.json", *arguments)


def test_a_model_that_is_no_folder_or_has_no_configuration_is_named(refused, tmp_path):
    assert "no/such/model" in refused("--model", "no/such/model", "--out", tmp_path / "p.json")
    assert "no config.json" in refused("--model", tmp_path, "--out", tmp_path / "p.json")


def test_a_profile_that_cannot_be_written_is_named(refused, model, tmp_path):
    assert f"{tmp_path} is a folder" in refused("--model", model, "--out", tmp_path)
    (tmp_path / "file").touch()
    assert "cannot be written" in refused("--model", model, "--out", tmp_path / "file" / "p.json")


@pytest.mark.parametrize(
    ("text", "says"), [("", "no prompt"), ("{}", "prompt 1"), ('"a"\n["b"]', "prompt 2"), ("a", "prompt 1")]
)
def test_a_prompt_that_is_none_is_named(refused, model, tmp_path, text, says):
    (tmp_path / "a.jsonl").write_text(text)
    given = ("--prompts", tmp_path / "a.jsonl")
    assert says in refused("--model", model, "--out", tmp_path / "p.json", *given)
