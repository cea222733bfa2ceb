"""tau(b) of a run's own requests."""

from pathlib import Path

import numpy as np
import pytest

from tailsieve_rl.cli import main
from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.decode_model import load_profile, model_of_curve, save_profile
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import Setup, TwoPool, Uniform
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import WORKLOADS
from tailsieve_rl.telemetry.run_files import RunFiles, outcome_line

TAU = model_of_curve([1, 4, 16, 64], [0.010, 0.012, 0.020, 0.050])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The result files of a run in virtual time, on replicas that decode by TAU."""
    files = RunFiles(str(tmp_path / "run"), "tailsieve", "simulated", 16, 4)
    steps = Simulation(Setup(16, 4, 2), WORKLOADS["math"](0, 4), TAU, Uniform(), records=True).steps(3)
    for i, step in enumerate(steps, 1):
        files.add_step(i, step.outcome.records, outcome_line(step.outcome), last=i == 3)
    return tmp_path / "run" / "requests.parquet"


def test_a_runs_estimate_is_what_its_replicas_decode_by(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    assert main(["analyze", "decode", str(run), "--out", str(out)]) == 0
    found = load_profile(out)
    at = [point.b for point in found.points]
    assert found.tau(at) == pytest.approx(np.asarray(TAU.tau(at)), rel=0.03)


def test_the_estimate_stands_beside_a_profile(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_profile(TAU, tmp_path / "profile.json")
    assert main(["analyze", "decode", str(run), "--profile", str(tmp_path / "profile.json")]) == 0
    ratios = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[3:]]
    assert len(ratios) > 5 and all(0.95 < ratio < 1.05 for ratio in ratios)


def test_a_run_that_drafts_has_an_estimate_for_each_depth(tmp_path: Path) -> None:
    model, setup = profile_with_drafts("qwen3.5-4b", "mtp", (1, 4)), Setup(16, 4, 2)
    policy = RouteDepth(TwoPool(Fixed(Allocation(2, 1))), FixedDepths(DraftDepths(tail=4, bulk=1)))
    files = RunFiles(str(tmp_path / "run"), "tailsieve", "simulated", 16, 4)
    for i, step in enumerate(Simulation(setup, WORKLOADS["math"](0, 4), model, policy, records=True).steps(4), 1):
        files.add_step(i, step.outcome.records, outcome_line(step.outcome), last=i == 4)
    out = tmp_path / "found.json"
    assert main(["analyze", "decode", str(tmp_path / "run" / "requests.parquet"), "--out", str(out)]) == 0
    found = load_profile(out)
    assert found.depths == (1, 4)
    for depth, b in ((4, [1, 4, 8]), (1, [1, 8, 32, 56])):
        assert found.tau(b, depth) == pytest.approx(np.asarray(model.tau(b, depth)), rel=0.05)


def test_a_file_that_is_not_a_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.parquet").write_text("no")
    assert main(["analyze", "decode", str(tmp_path / "other.parquet")]) == 2
    assert "other.parquet is not a run's requests.parquet" in capsys.readouterr().err
