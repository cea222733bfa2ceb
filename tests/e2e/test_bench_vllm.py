"""The benchmark on two real engines, whose drafter is one that never drafts right."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from e2e.jobs import run_bench

from tailsieve_rl.checkpoints.qwen3_5 import write_qwen3_5_mtp
from tailsieve_rl.routing.policies.route_depth import MIN_VERIFICATIONS


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bench_vllm")
    write_qwen3_5_mtp(out / "model", acceptance=0.0)
    run_bench(
        "bench/speculation_vllm",
        out,
        f"actor_rollout_ref.model.path={out}/model",
        "data.train_batch_size=8",
        "actor_rollout_ref.rollout.n=2",
        "bench.workloads=[sky_t1]",
        "bench.divisor=250",
        "++trainer.v1.tailsieve.controller.name=fixed",
        "trainer.v1.tailsieve.allocation={initial_groups:1,initial_replicas:1}",
        "trainer.v1.tailsieve.decode_model={source:online,path:null}",
        "trainer.v1.tailsieve_rollout={profile:null,policies:[uniform,tailsieve,tailsieve_route_depth],converge:3,rounds:1,baseline_repeats:1}",
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


def test_drafts_that_are_never_right_are_counted_and_end(out: Path) -> None:
    [path] = out.glob("*/tailsieve_route_depth/steps.jsonl")
    first, *later = [json.loads(line) for line in path.read_text().splitlines()]
    assert first["draft_depth_tail"] == 4 and first["accept_rate_tail"] < 0.1
    assert all(step["draft_depth_tail"] == step["draft_depth_bulk"] == 0 for step in later)
    rows = pq.read_table(path.with_name("requests.parquet")).to_pylist()
    verified = sum(sum(row["accepted"]) for row in rows if (row["step"], row["pool"]) == (1, "tail"))
    # Two long responses, whichever group was the one left over; a short one would say too little of its drafter.
    assert (later[0]["stale_pools"] >= 1) == (verified >= MIN_VERIFICATIONS)
