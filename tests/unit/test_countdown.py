"""The demo of examples/countdown: its problems, its reward, its statistics, its build command."""

import asyncio
import importlib
import math
import random
import sys
from pathlib import Path
from statistics import NormalDist
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "countdown"


def load(name: str) -> ModuleType:
    """Import a file of the example as it is run: with its own folder first on the path."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


task, reward, check, build = (load(name) for name in ("task", "reward", "check", "build"))


@pytest.fixture(scope="module")
def tokenizer():
    return task.build_tokenizer()


def score(text: str, truth: str = "73") -> float:
    result = reward.compute_score(task.DATA_SOURCE, text, truth)
    assert set(result) == {"score", "acc"} and result["score"] == result["acc"]
    return result["score"]


def test_a_problem_is_a_prompt_and_a_truth_modulo_100():
    assert task.Walk(37, 3, 12).prompt == "start 37 step 3 times 12"
    assert task.Walk(37, 3, 12).truth == 73
    assert task.Walk(99, 9, 160).truth == (99 + 1440) % 100


def test_the_training_prompt_is_what_the_chat_template_renders(tokenizer):
    walk = task.Walk(37, 3, 12)
    messages = [{"role": "user", "content": walk.prompt}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert ids == tokenizer.convert_tokens_to_ids(walk.prompt_words)
    assert len(ids) == task.PROMPT_TOKENS == 14
    assert tokenizer.unk_token_id not in ids


def test_every_word_of_a_demonstration_is_one_token(tokenizer):
    rng = random.Random(0)
    words = [word for _ in range(50) for word in task.demonstration(rng, task.Walk(1, 9, 160), 384)]
    assert tokenizer("0 1 wait " + " ".join(words))["input_ids"] == tokenizer.convert_tokens_to_ids(
        ["0", "1", "wait", *words]
    )
    assert tokenizer.unk_token_id not in tokenizer.convert_tokens_to_ids(words)
    assert len(tokenizer) == 530


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("brief 1 : 73 answer 73", 1.0),
        ("brief 1 : 73 answer 73 <|im_end|>", 1.0),
        ("answer 73", 1.0),
        ("brief 1 : 72 answer 72", 0.0),
        ("brief 1 : 72 answer 72 wait brief 1 : 73 answer 73", 1.0),
        ("brief 1 : 73 answer 73 wait brief 1 : 72 answer 72", 0.0),
        ("brief 1 : 73 answer 73 wait brief 2 : 70", 0.0),
        ("brief 1 : 73 answer 73 wait", 0.0),
        ("brief 1 : 73", 0.0),
        ("answer 73 73", 0.0),
        ("answer 173", 0.0),
        ("answer", 0.0),
        ("", 0.0),
    ],
)
def test_the_last_answer_counts_and_nothing_may_follow_it(text, right):
    assert score(text) == right


def test_a_demonstration_without_slips_is_right_if_it_ends_and_wrong_if_it_is_cut(monkeypatch, tokenizer):
    monkeypatch.setattr(task, "SLIP", {"brief": 0.0, "steps": 0.0})
    rng, seen = random.Random(1), set()
    for _ in range(300):
        walk = task.Walk(rng.randrange(100), rng.randint(1, 9), rng.randint(2, 60))
        words = task.demonstration(rng, walk, cap=384)
        text = tokenizer.decode(tokenizer.convert_tokens_to_ids(words), skip_special_tokens=True)
        ended = words[-1] == "<|im_end|>"
        assert "<|im_end|>" not in text and len(words) <= 384
        assert score(text, str(walk.truth)) == float(ended)
        seen.add((ended, "wait" in words, words[0]))
    assert {(True, False, "brief"), (True, True, "brief"), (True, False, "steps"), (False, False, "steps")} <= seen


def test_verl_loads_the_reward_by_its_path_and_decodes_the_end_away(tokenizer):
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    custom = {"path": str(FOLDER / "reward.py"), "name": "compute_score"}
    manager = {"source": "register", "name": "naive"}
    config = OmegaConf.create({"reward": {"custom_reward_function": custom, "reward_manager": manager}})
    words = ["brief", "1", ":", "40", "answer", "40", "<|im_end|>", "<pad>", "<pad>"]
    data = DataProto.from_dict(
        tensors={
            "responses": _row(tokenizer.convert_tokens_to_ids(words)),
            "attention_mask": _row([1] * 9 + [1] * 7 + [0] * 2),
        },
        non_tensors={
            "data_source": _objects(task.DATA_SOURCE),
            "reward_model": _objects({"style": "rule", "ground_truth": "40"}),
            "extra_info": _objects({"split": "train", "index": 0}),
        },
    )
    result = asyncio.run(_reward(load_reward_manager, config, tokenizer, data))
    assert result == {"reward_score": 1.0, "reward_extra_info": {"score": 1.0, "acc": 1.0}}


def _row(values: list[int]):
    import torch

    return torch.tensor([values])


def _objects(value: object) -> np.ndarray:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


async def _reward(load_reward_manager, config, tokenizer, data) -> dict:
    return await load_reward_manager(config, tokenizer).run_single(data)


def test_every_block_of_prompts_has_the_same_tail():
    walks = task.draw_walks(4 * task.BLOCK, seed=3)
    blocks = [sorted(w.times for w in walks[i : i + 64]) for i in range(0, 256, 64)]
    assert {block[-1] for block in blocks} == {89}  # 9 * exp(0.95 * z) at the quantile 63.5 / 64
    edges = [times_at(rank / 64) for rank in range(1, 64)]
    for block in blocks:
        assert all(low <= times <= high for low, times, high in zip([2, *edges], block, [*edges, 160], strict=True))


def times_at(quantile: float) -> int:
    """`times` at a quantile of its distribution: lognormal, median 9, sigma 0.95, at least 2."""
    return max(2, round(9.0 * math.exp(0.95 * NormalDist().inv_cdf(quantile))))


@pytest.mark.parametrize("size", [8, 16, 32])
def test_aligned_parts_of_a_block_see_the_tail_evenly(size):
    walks = task.draw_walks(128, seed=4)
    for begin in range(0, 128, size):
        block = sorted(w.times for w in walks[begin - begin % 64 : begin - begin % 64 + 64])
        part = sorted(w.times for w in walks[begin : begin + size])
        width = 64 // size
        for place, times in enumerate(part):
            assert block[place * width] <= times <= block[(place + 1) * width - 1]


def test_the_same_seed_draws_the_same_problems_and_validation_avoids_those_of_training():
    train = task.draw_walks(1024, seed=0)
    assert train == task.draw_walks(1024, seed=0)
    assert train != task.draw_walks(1024, seed=1)
    assert set(train) & set(task.draw_walks(64, seed=1)), "nothing to avoid: this test proves nothing"
    assert not set(train) & set(task.draw_walks(64, seed=1, taken=train))


@pytest.mark.parametrize("count", [0, -64, 1, 65])
def test_a_number_of_prompts_that_is_no_multiple_of_a_block_is_refused(count):
    with pytest.raises(ValueError, match="multiple of 64"):
        task.draw_walks(count, seed=0)


def test_variance_components_by_hand():
    lengths = np.array([[1.0, 3.0], [5.0, 7.0]])  # within 2; means 2 and 6, variance 8; between 8 - 2 / 2 = 7
    assert check.prompt_variance_share(lengths) == pytest.approx(7 / 9)
    assert check.prompt_variance_share(np.array([[1.0, 9.0], [9.0, 1.0]])) == 0.0


def test_statistics_by_hand():
    lengths = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 384.0]])
    found = check.statistics(lengths, np.array([[1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]), cap=384)
    assert (found.p50, found.longest, found.cap_share) == (5.5, 384.0, 0.1)
    assert (found.accuracy, found.mixed_group_share) == (0.6, 0.5)
    assert found.prompt_variance_share + found.sampling_variance_share == 1.0


def run_build(out: Path, *options: str) -> None:
    build.build(build.parse_arguments(["--out", str(out), "--train-prompts", "64", *options]))


def test_the_build_writes_what_verl_reads(tmp_path):
    from transformers import AutoConfig, AutoTokenizer

    run_build(tmp_path, "--steps", "2")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    config = AutoConfig.from_pretrained(tmp_path / "model")
    assert config.vocab_size == len(tokenizer) == 530
    assert (config.eos_token_id, config.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert tokenizer.eos_token == "<|im_end|>" and "<|im_start|>" in tokenizer.chat_template
    assert (tmp_path / "model" / "generation_config.json").is_file()
    for split in ("train", "val"):
        table = pq.read_table(tmp_path / f"{split}.parquet")
        assert table.column_names == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
        rows = table.to_pylist()
        assert [row["extra_info"] for row in rows] == [{"split": split, "index": i} for i in range(64)]
        start, step, times = (int(word) for word in rows[5]["prompt"][0]["content"].split()[1::2])
        assert rows[5]["prompt"][0]["role"] == "user"
        assert rows[5]["reward_model"] == {"style": "rule", "ground_truth": str((start + step * times) % 100)}


def test_the_same_recipe_gives_the_same_files_and_is_not_built_twice(tmp_path, capsys):
    run_build(tmp_path / "a", "--steps", "3")
    run_build(tmp_path / "b", "--steps", "3")
    names = ["model/model.safetensors", "model/tokenizer.json", "train.parquet", "val.parquet", "recipe.json"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    before = (tmp_path / "a" / "model" / "model.safetensors").stat().st_mtime_ns
    capsys.readouterr()
    run_build(tmp_path / "a", "--steps", "3")
    assert "already built" in capsys.readouterr().out
    assert (tmp_path / "a" / "model" / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("change", ["another seed", "lost file", "interrupted"])
def test_another_recipe_or_an_incomplete_result_is_built_again(tmp_path, capsys, change):
    run_build(tmp_path, "--steps", "1")
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    if change == "lost file":
        (tmp_path / "val.parquet").unlink()
    if change == "interrupted":
        (tmp_path / "recipe.json").write_text('{"seed":')
    capsys.readouterr()
    run_build(tmp_path, "--steps", "1", *(("--seed", "1") if change == "another seed" else ()))
    assert "already built" not in capsys.readouterr().out
    assert ((tmp_path / "model" / "model.safetensors").read_bytes() != weights) == (change == "another seed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--val-prompts", "63"], "--val-prompts 63: must be a positive multiple of 64"),
        (["--train-prompts", "0"], "--train-prompts 0: must be a positive multiple of 64"),
        (["--steps", "0"], "at least one step"),
        ([], "--out"),
    ],
)
def test_bad_options_end_with_one_clear_line(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as refused:
        build.parse_arguments(options and ["--out", str(tmp_path), *options])
    assert refused.value.code == 2
    assert message in capsys.readouterr().err
