"""What routing costs: the README's command runs, and its cutoffs end every response."""

import json
import subprocess
import sys
from pathlib import Path

from e2e.jobs import ROOT


def test_overheads_are_measured_with_a_steps_512_requests(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailsieve_rl.benchmark.overheads", "--out", str(tmp_path)]
    command += ["--rounds", "2", "--cutoffs", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["cutoff_requests"] == 512
    assert 0 < found["cutoff_verified_ms_p50_p95"][0] <= found["cutoff_verified_ms_p50_p95"][1]
    assert found["own_work_pairs_per_s"] > found["pairs_per_s"] > 0
    assert set(found["controller_ms"]) == {"tailsieve_hierarchical", "tailsieve"}
