"""`tailsieve bench` in virtual time, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_prints_a_table_and_writes_results_and_a_figure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailsieve_rl.benchmark.command", "--config-name", "bench/simulated"]
    command += [f"bench.out={tmp_path}", "data.train_batch_size=16", "trainer.v1.tailsieve_rollout.converge=4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "qwen3.5-4b, math: 16 groups x 8 on 8 simulated replicas"
    assert lines[-2:] == [str(tmp_path / "results.json"), str(tmp_path / "bench.png")]
    [cell] = json.loads((tmp_path / "results.json").read_text())["cells"]
    assert list(cell["policies"]) == ["uniform", "least_loaded", "tailsieve_fixed", "tailsieve"]
    assert 0 < cell["best_static_s"] < cell["policies"]["uniform"]["step_s"] > cell["bound_s"] > 0
    assert (tmp_path / "bench.png").stat().st_size > 5000
