"""`tailsieve evaluate` from a checkpoint of verl's, on two real engines, with a model whose answers are known."""

import importlib.util
import json
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from e2e.jobs import ROOT, Job, run_job

from tailsieve_rl.cli import main

ANSWER, OTHER = "18", "7"
RAMBLE = "abcdef"
"""What the model says again and again before it answers, three times out of four, until it is cut off."""
CAP = 48
GSM8K, AIME, REQUESTS = 40, 6, 30


def _bigram_model(folder: Path) -> None:
    """A model of no layer's doing: the last token alone decides the next. It says RAMBLE, then \\boxed{18}<END>."""
    spec = importlib.util.spec_from_file_location("gsm8k_prepare", ROOT / "examples" / "gsm8k" / "prepare.py")
    prepare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prepare)
    tokenizer = prepare.train_tokenizer()
    model = prepare.build_model(tokenizer)
    model.config.tie_word_embeddings, model.config.architectures = False, ["Qwen3ForCausalLM"]
    model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.lm_head.weight))
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    before = tokenizer("<|im_start|>assistant\n")["input_ids"][-1]
    answer = tokenizer(f"\\boxed{{{ANSWER}}}<END>")["input_ids"]
    ramble = tokenizer.convert_tokens_to_ids(list(RAMBLE))
    said = [before, *ramble, *answer]
    assert len(set(said)) == len(said), "a token would be followed by two"
    # Orthogonal embeddings: a token's logits are those of its successors, all others 0.
    embedding = model.model.embed_tokens.weight.data
    embedding[said] = torch.linalg.qr(torch.randn(embedding.shape[1], len(said)))[0].T
    strength = dict.fromkeys(pairwise(said), 3.0)
    # Against a presence penalty of 1.5 at temperature 0.7, and within the nucleus of 0.8: three to one.
    strength[ramble[-1], ramble[0]] = 3.0 + 2.27 / embedding.shape[1] ** 0.5
    for (last, following), weight in strength.items():
        model.lm_head.weight.data[following] += weight * embedding[last]
    (folder / "huggingface").mkdir(parents=True)
    model.config.save_pretrained(folder / "huggingface")
    tokenizer.save_pretrained(folder / "huggingface")
    torch.save(model.state_dict(), folder / "model_world_size_1_rank_0.pt")
    (folder / "fsdp_config.json").write_text(json.dumps({"FSDP_version": 2, "world_size": 1}))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GSM8K's questions, with answers of which every other is the model's."""
    out = tmp_path_factory.mktemp("data")
    lines = (ROOT / "examples" / "gsm8k" / "sample_test.jsonl").read_text().splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    truths = [ANSWER if i % 2 else OTHER for i in range(GSM8K)]
    rows = {
        "gsm8k": [{"question": q, "answer": f"#### {t}"} for q, t in zip(questions, truths, strict=False)],
        "aime24": [{"problem": q, "answer": t} for q, t in zip(questions, truths[:AIME], strict=False)],
    }
    for name, problems in rows.items():
        (out / f"{name}.jsonl").write_text("".join(json.dumps(problem) + "\n" for problem in problems))
        command = ["data", name, "--split", "test", "--file", str(out / f"{name}.jsonl"), "--out", str(out)]
        assert main(command) == 0
    return out


@pytest.fixture(scope="module")
def job(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Job:
    out = tmp_path_factory.mktemp("evaluate")
    _bigram_model(out / "run" / "global_step_3" / "actor")
    options = f"--sets gsm8k,aime24 --data {data} --max-tokens {CAP} --requests {REQUESTS} --out {out / 'out'}"
    cli = "import sys; from tailsieve_rl.cli import main; sys.exit(main())"
    job = run_job(["-c", cli, "evaluate", str(out / "run" / "global_step_3"), *options.split(), "--"], out)
    assert job.returncode == 0, job.log[-3000:]
    return job


@pytest.fixture
def folder(job: Job) -> Path:
    return job.out / "out" / "run-global_step_3"


def test_every_problem_has_every_response_once_truncated_or_not(folder: Path) -> None:
    rows = pq.read_table(folder / "responses.parquet").to_pylist()
    asked = [("gsm8k", i, 0) for i in range(GSM8K)] + [("aime24", i, j) for i in range(AIME) for j in range(10)]
    assert [(row["set"], row["problem"], row["sample"]) for row in rows] == asked
    cut_off = [row for row in rows if "<END>" not in row["response"]]
    assert 0 < len(cut_off) < len(rows)
    assert all(row["truncated"] == ("<END>" not in row["response"]) for row in rows)
    assert {row["response_tokens"] for row in cut_off} == {CAP}


def test_an_answer_is_right_if_it_is_the_problems(folder: Path) -> None:
    rows = pq.read_table(folder / "responses.parquet").to_pylist()
    for row in rows:
        assert row["response"].startswith(RAMBLE)
        said = f"\\boxed{{{ANSWER}}}" in row["response"]
        assert row["correct"] == (said and row["ground_truth"] == ANSWER), row
    sets = json.loads((folder / "results.json").read_text())["sets"]
    right = sum(row["correct"] for row in rows if row["set"] == "gsm8k")
    assert right > GSM8K / 4
    assert (sets["gsm8k"]["n"], sets["gsm8k"]["k"], sets["gsm8k"]["accuracy"]) == (1, 1, pytest.approx(right / GSM8K))
    assert (sets["aime24"]["n"], sets["aime24"]["k"], sets["aime24"]["accuracy"]) == (10, 10, 0.5)


def test_what_a_round_leaves_over_is_the_tail_of_the_next_and_the_last_leaves_nothing(folder: Path) -> None:
    rounds = json.loads((folder / "results.json").read_text())["rollouts"]["streams"]
    assert {name: len(lines) for name, lines in rounds.items()} == {"n1": 2, "n10": 2}
    for lines in rounds.values():
        assert lines[0]["q"] == 0 and lines[0]["q_next"] > 0 and lines[-1]["q_next"] == 0
        assert [line["q"] for line in lines[1:]] == [line["q_next"] for line in lines[:-1]]
        assert lines[1]["m"] == 1
    for name, lines in rounds.items():
        dispatched = pq.read_table(folder / "rollouts" / name / "requests.parquet").to_pylist()
        again = [row for row in dispatched if row["attempt"] == 2]
        assert {row["prompt_index"] for row in again} and {row["pool"] for row in again} == {"tail"}
        left_over = {row["prompt_index"] for row in dispatched if row["step"] == 1 and row["status"] == "aborted"}
        assert {row["prompt_index"] for row in again} == left_over
        assert len({row["prompt_index"] for row in again}) == lines[0]["q_next"]


def test_the_table_and_how_it_was_measured_are_printed(job: Job, folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text())
    right = f"{100 * results['sets']['gsm8k']['accuracy']:.2f}%"
    [row] = [line for line in job.log.splitlines() if line.startswith("| run-global_step_3")]
    assert row.split() == ["|", "run-global_step_3", "|", right, "|", "50.00%", "|"]
    assert row in (job.out / "out" / "table.md").read_text()
    assert "policy two_pool on 2 replicas, 4 rounds, q 0-1, m 0-1" in job.log
    assert 0 < results["time_s"]["generation"] < results["time_s"]["total"]
