"""The benchmark on two real engines."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from e2e.jobs import run_bench


@pytest.fixture(scope="module")
def out(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench_vllm")
    run_bench(
        "bench/vllm",
        out,
        f"data.train_files={assets}/train.parquet",
        f"actor_rollout_ref.model.path={assets}/model",
        "data.train_batch_size=8",
        "data.max_prompt_length=512",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.max_model_len=560",
        "bench.divisor=350",
        "++trainer.v1.tailsieve.controller.name=fixed",
        "trainer.v1.tailsieve_rollout={policies:[uniform,tailsieve],converge:1,rounds:2,baseline_repeats:1}",
    )
    return out


def test_policies_stand_side_by_side_on_real_engines(out: Path) -> None:
    results = json.loads((out / "results.json").read_text())
    [cell] = results["cells"]
    assert (results["backend"], cell["replicas"], cell["best_static_s"]) == ("vllm", 2, None)
    assert all(found["step_s"] > 0 for found in cell["policies"].values())
    assert (cell["policies"]["tailsieve"]["q"], cell["policies"]["tailsieve"]["m"]) == (1, 1)


def test_both_policies_run_the_same_prompts_with_the_same_lengths(out: Path) -> None:
    fresh = {}
    for name in ("uniform-1", "tailsieve"):
        [path] = out.glob(f"*/{name}/requests.parquet")
        rows = [r for r in pq.read_table(path).to_pylist() if r["attempt"] == 1 and r["status"] == "consumed"]
        fresh[name] = {(r["prompt_index"], r["session"]): r["response_tokens"] for r in rows}
    both = fresh["uniform-1"].keys() & fresh["tailsieve"].keys()
    assert len(both) >= 8
    assert all(fresh["uniform-1"][key] == fresh["tailsieve"][key] for key in both)
