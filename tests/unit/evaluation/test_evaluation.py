"""What `tailsieve evaluate` computes and refuses; its job runs in tests/e2e/test_evaluate.py."""

import itertools
import json
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.cli import main
from tailsieve_rl.config.evaluation import round_groups, rounds
from tailsieve_rl.evaluation import results
from tailsieve_rl.evaluation.benchmarks import BENCHMARKS, samples_of
from tailsieve_rl.evaluation.model import find_model
from tailsieve_rl.evaluation.pass_at_k import paired_interval, pass_at_k, wilson
from tailsieve_rl.evaluation.prompts import read_sets
from tailsieve_rl.evaluation.table import difference, notes, table
from tailsieve_rl.input_error import InputError
from tailsieve_rl.routing.ledger import Ledger
from tailsieve_rl.routing.plan import fresh_groups, plan_step, step_size

# ------------------------------------------------------------------ pass@k


@pytest.mark.parametrize("n", range(1, 7))
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_right_response(n):
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([True] * c + [False] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(fmean(any(subset) for subset in subsets))


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0, 1))
def test_pass_at_k_is_unbiased(more, k, p):
    n = k + more
    chances = [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    expected = sum(chance * pass_at_k(n, c, k) for c, chance in enumerate(chances))
    assert expected == pytest.approx(1 - (1 - p) ** k, abs=1e-9)


@pytest.mark.parametrize(("n", "correct", "k"), [(9, 0, 10), (10, 11, 1), (10, -1, 1), (10, 1, 0)])
def test_pass_at_k_needs_k_responses(n, correct, k):
    with pytest.raises(ValueError, match=f"pass@{k}"):
        pass_at_k(n, correct, k)


def test_the_interval_is_wilsons():
    """Of 0.9 and 0.5 as in the literature (Newcombe 1998, Table I: 81 of 263)."""
    assert wilson([1] * 81 + [0] * 182) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson([0.0] * 10)[0] == 0.0 < wilson([0.0] * 10)[1] and wilson([1.0] * 10)[1] == 1.0


def test_the_interval_of_a_change_is_of_the_same_problems():
    assert paired_interval([1, 0, 1, 0], [1, 0, 1, 0]) == (0.0, 0.0)
    low, high = paired_interval([1, 1, 1, 0], [0, 1, 1, 0])
    assert low < 0.25 < high and high - 0.25 == pytest.approx(1.959964 * 0.25)


# ------------------------------------------------------------------ every prompt once


@given(st.integers(1, 3000), st.integers(1, 16), st.integers(1, 2048))
def test_rounds_are_even_and_within_the_requests(prompts, samples, requests):
    groups, count = round_groups(prompts, samples, requests), rounds(prompts, samples, requests)
    assert 1 <= groups <= prompts and (count - 1) * groups < prompts <= count * groups
    assert groups * samples <= max(requests, samples)


@given(st.integers(1, 60), st.integers(1, 20), st.data())
def test_every_prompt_is_consumed_once_whatever_the_policy_wants(prompts, groups, data):
    """The evaluation's rounds against the ledger, with any q at any time."""
    left, ledger, drawn, step = prompts, Ledger(), 0, 0
    while left:
        step += 1
        consumed, q_next = step_size(groups, left, data.draw(st.integers(0, groups - 1)))
        fresh = fresh_groups(consumed, len(ledger.tail), q_next)
        assert fresh >= 0 and drawn + fresh <= prompts
        plan = plan_step(
            step=step,
            responses=1,
            tail=[(group.uid, group.attempt + 1) for group in ledger.tail],
            fresh=[f"{drawn + i}" for i in range(fresh)],
            q_next=q_next,
            m=1,
            replicas=["a", "b"],
        )
        drawn += fresh
        uids = [group.uid for group in plan.groups]
        ledger = ledger.begin(plan).finish(step, uids[:consumed], uids[consumed:])
        ledger.check()
        left -= consumed
    assert drawn == prompts == ledger.consumed and not ledger.tail


# ------------------------------------------------------------------ the table


def measured(name: str, **accuracies: tuple[int, int]) -> dict[str, Any]:
    """Results of a model that solves so many of so many problems."""
    sets = {}
    for key, (right, count) in accuracies.items():
        k = BENCHMARKS[key].k
        sets[key] = {
            "problems": count,
            "n": k,
            "k": k,
            "accuracy": right / count,
            "accuracy_ci95": wilson([1.0] * right + [0.0] * (count - right)),
            "correct": [k] * right + [0] * (count - right),
            "response_tokens": {"p50": 100.0},
            "truncated_share": 0.25,
            "regenerated_share": 0.0625,
            "made": {"too_long": 2},
        }
    line = {"q": 1, "m": 2, "aborted_tokens": 10}
    return {
        "model": {"name": name},
        "protocol": {
            "sets": {key: {"k": BENCHMARKS[key].k, "prompts": "a"} for key in accuracies},
            "sampling": {"temperature": 0.7, "max_tokens": 16384},
        },
        "sets": sets,
        "rollouts": {"policy": "two_pool", "replicas": 8, "tokens": 100, "streams": {"n1": [{**line, "q": 0}, line]}},
        "time_s": {"generation": 60.4, "total": 90.0},
    }


BASE = measured("Qwen3.5-2B", gsm8k=(124, 1319), math500=(67, 500), aime24=(9, 30), aime25=(9, 30))
TRAINED = measured("baseline", gsm8k=(1002, 1319), math500=(381, 500), aime24=(15, 30), aime25=(13, 30))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_is_the_papers():
    """Two rows of Table 3, from the numbers of right answers that give them."""
    heading, _, base, trained = table([TRAINED], BASE, list(BENCHMARKS)).splitlines()
    assert cells(heading) == ["Model", "GSM8K pass@1", "MATH-500 pass@1", "AIME24 pass@10", "AIME25 pass@10"]
    assert cells(base) == ["Qwen3.5-2B (base)", "9.40%", "13.40%", "30.00%", "30.00%"]
    assert cells(trained)[1:] == ["75.97% (+66.57)", "76.20% (+62.80)", "50.00% (+20.00)", "43.33% (+13.33)"]


def test_without_a_base_there_is_no_change_and_a_loss_has_its_sign():
    assert cells(table([BASE], None, ["gsm8k"]).splitlines()[-1]) == ["Qwen3.5-2B", "9.40%"]
    assert cells(table([BASE], TRAINED, ["gsm8k"]).splitlines()[-1]) == ["Qwen3.5-2B", "9.40% (-66.57)"]


def test_a_change_comes_with_an_interval():
    change = difference(TRAINED, BASE, "gsm8k")
    low, high = change["ci95"]
    assert change["accuracy"] == pytest.approx(878 / 1319)
    assert low < change["accuracy"] < high
    note = notes(TRAINED, BASE)[1]
    assert f", change +66.57 ({100 * low:+.2f} to {100 * high:+.2f})" in note


def test_notes_say_how_it_was_measured():
    first, gsm8k, *_ = notes(TRAINED)
    assert "policy two_pool on 8 replicas, 2 rounds, q 0-1, m 2-2, 20.0 % of tokens thrown away" in first
    assert "60 s of generation, 90 s in all" in first
    assert "GSM8K pass@1 of 1319 problems, n 1: 75.97% (73.59% to 78.20%)" in gsm8k
    assert "25.00% truncated, 6.25% regenerated; 2 problems left out when the data was made" in gsm8k


# ------------------------------------------------------------------ what can be compared


def written(folder: Path, found: dict[str, Any]) -> str:
    folder.mkdir(parents=True)
    results.write(found, folder)
    return str(folder)


def test_results_are_set_side_by_side_without_an_engine(tmp_path, capsys):
    base, trained = written(tmp_path / "base", BASE), written(tmp_path / "trained", TRAINED)
    assert main(["evaluate", f"{trained}/results.json", "--base", base, "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "75.97% (+66.57)" in out and "75.97% (+66.57)" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["protocol"]["sampling"].update(temperature=1.0), "was measured with temperature 0.7, not 1.0"),
        (lambda r: r["protocol"]["sampling"].update(top_k=20), "was measured with top_k None, not 20"),
        (lambda r: r["protocol"]["sets"]["gsm8k"].update(prompts="b"), "on other problems of gsm8k"),
        (lambda r: r["protocol"]["sets"].update(extra={}), "has no results for extra"),
        (lambda r: r["model"].update(name="Qwen3.5-2B"), "Qwen3.5-2B: two models of that name"),
    ],
)
def test_what_was_not_measured_alike_is_not_compared(tmp_path, capsys, change, message):
    other = json.loads(json.dumps(TRAINED))
    change(other)
    if "extra" in other["protocol"]["sets"]:
        other["sets"]["extra"] = other["sets"]["gsm8k"]
    line = refused(capsys, tmp_path / "out", written(tmp_path / "a", other), "--base", written(tmp_path / "b", BASE))
    assert message in line


@pytest.mark.parametrize("text", ["{", "[]", '{"protocol": {"sets": {"gsm8k": {}}}}', '{"seed": 1}'])
def test_a_file_of_something_else_is_no_result(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match="is no result of tailsieve evaluate"):
        results.read(tmp_path)


# ------------------------------------------------------------------ bad input


def refused(capsys: pytest.CaptureFixture[str], out: Path, *arguments: object) -> str:
    assert main(["evaluate", *map(str, arguments), "--out", str(out)]) == 2
    assert not out.exists(), "something was written"
    [line] = capsys.readouterr().err.splitlines()
    return line.removeprefix("tailsieve: error: ")


def test_samples_are_k_or_as_many_as_given():
    assert samples_of(["gsm8k", "aime24"], None) == {"gsm8k": 1, "aime24": 10}
    assert samples_of(["gsm8k", "aime24"], 16) == {"gsm8k": 16, "aime24": 16}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sets", "gsm8k,mmlu"), "--sets gsm8k,mmlu: must be of gsm8k,math500,aime24,aime25, each at most once"),
        (("--sets", "gsm8k,gsm8k"), "--sets gsm8k,gsm8k: must be of"),
        (("--samples", "4"), "--samples 4: AIME24 pass@10 needs 10 or more"),
        (("--max-tokens", "0"), "--max-tokens 0: must be 1 or more"),
        (("--requests", "0"), "--requests 0: must be 1 or more"),
        (("--seed", "-1"), "--seed -1: must be 0 or more"),
        ((), "/nowhere: no such folder, and no name of a model on the hub (OWNER/NAME)"),
    ],
)
def test_an_option_that_cannot_work_is_refused_by_name(tmp_path, capsys, options, message):
    assert refused(capsys, tmp_path / "out", "/nowhere", *options).startswith(message)


def model_in(folder: Path, *, config: bool = True, weights: bool = True) -> Path:
    folder.mkdir(parents=True)
    if config:
        (folder / "config.json").write_text("{}")
    if weights:
        (folder / "model.safetensors").write_text("")
    return folder


def shards_in(folder: Path, **made: bool) -> Path:
    model_in(folder / "huggingface", **made)
    (folder / "fsdp_config.json").write_text("{}")
    return folder


def test_a_model_is_found_where_it_is(tmp_path):
    plain = model_in(tmp_path / "plain")
    assert (find_model(str(plain)).path, find_model(str(plain)).name) == (str(plain), "plain")
    saved = shards_in(tmp_path / "run" / "global_step_3" / "actor")
    assert find_model(str(saved.parent)).path == str(saved / "huggingface")
    assert find_model(str(saved / "huggingface")).shards is None
    assert find_model("Qwen/Qwen3.5-2B").path == "Qwen/Qwen3.5-2B"
    assert {find_model(str(p)).name for p in (saved.parent, saved, saved / "huggingface")} == {"run-global_step_3"}


def test_a_checkpoint_without_weights_for_an_engine_is_merged(tmp_path):
    saved = shards_in(tmp_path / "run" / "global_step_3" / "actor", weights=False)
    for given_ in (saved.parent, saved, saved / "huggingface"):
        assert find_model(str(given_)).shards == saved


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda path: model_in(path, config=False), "has no config.json: neither a model nor a checkpoint of verl's"),
        (lambda path: model_in(path, weights=False), "has a config.json, but no weights"),
        (lambda path: shards_in(path, config=False, weights=False), "has no huggingface/config.json"),
        (
            lambda path: (path / "model" / "dist_ckpt").mkdir(parents=True),
            "python -m verl.model_merger merge --backend",
        ),
        (lambda path: path.write_text(""), "is no result of tailsieve evaluate"),
    ],
)
def test_what_is_no_model_is_refused_with_what_is_missing(tmp_path, capsys, made, message):
    made(tmp_path / "given")
    assert message in refused(capsys, tmp_path / "out", tmp_path / "given", "--sets", "gsm8k")


def test_problems_must_be_there_and_of_the_set(tmp_path, capsys):
    model = model_in(tmp_path / "model")
    line = refused(capsys, tmp_path / "out", model, "--sets", "math500", "--data", tmp_path)
    path = tmp_path / "math500_test.parquet"
    assert line == f"{path}: no such file; tailsieve data math500 --split test --out {tmp_path} makes it"
    (tmp_path / "a.jsonl").write_text('{"question": "?", "answer": "#### 1"}')
    assert main(["data", "gsm8k", "--split", "test", "--file", f"{tmp_path}/a.jsonl", "--out", str(tmp_path)]) == 0
    (tmp_path / "gsm8k_test.parquet").rename(path)
    capsys.readouterr()
    assert refused(capsys, tmp_path / "out", model, "--sets", "math500", "--data", tmp_path).endswith(
        "holds gsm8k, not math500"
    )
    pq.write_table(pq.read_table(path).drop_columns(["reward_model"]), path)
    assert "has no column reward_model" in refused(
        capsys, tmp_path / "out", model, "--sets", "math500", "--data", tmp_path
    )


def test_the_digest_is_of_prompts_and_truths(tmp_path):
    digests = set()
    for answer in ("1", "1", "2"):
        (tmp_path / "a.jsonl").write_text(json.dumps({"problem": "?", "answer": answer}))
        assert main(["data", "math500", "--file", f"{tmp_path}/a.jsonl", "--out", str(tmp_path)]) == 0
        digests.add(read_sets(tmp_path, {"math500": 1})["math500"].digest)
    assert len(digests) == 2
