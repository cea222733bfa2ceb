"""`tailsieve calibrate` on a real tiny engine, with drafts and without: started, measured, stopped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from live.tiny_vllm import build_model

from tailsieve_rl.routing.decode_model import DecodeModel, load_profile
from tailsieve_rl.versions import no_speculation

COMMAND = "calibrate --batch-sizes 1,2,4 --tokens 64 --repeats 2"
DRAFTS = ' --draft-depths 0,2 --speculative {"method":"ngram","prompt_lookup_min":1,"prompt_lookup_max":3}'
DEPTHS = (0,) if no_speculation() else (0, 2)


@pytest.fixture(scope="module")
def profile(tmp_path_factory, tensor_parallel) -> tuple[DecodeModel, list[str]]:
    """The profile, and what was told on the way."""
    folder = tmp_path_factory.mktemp("calibrate")
    build_model(folder / "model")
    command = [
        sys.executable,
        "-c",
        "import sys; from tailsieve_rl.cli import main; sys.exit(main())",
        *(COMMAND + (DRAFTS if 2 in DEPTHS else "")).split(),
    ]
    command += ["--model", str(folder / "model"), "--out", str(folder / "profile.json")]
    command += ["--", "--tensor-parallel-size", str(tensor_parallel)] if tensor_parallel > 1 else []
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == str(folder / "profile.json")
    return load_profile(folder / "profile.json"), done.stderr.splitlines()


def test_each_batch_size_is_measured_at_each_draft_depth(profile):
    model, told = profile
    points = [(point.draft_depth, point.b) for point in model.points]
    assert points == [(depth, b) for depth in DEPTHS for b in (1, 2, 4)]
    assert sum(" ms a token (" in line for line in told) == len(points)


@pytest.mark.speculation
def test_the_profile_says_how_many_drafts_the_engine_accepts(profile):
    model, _ = profile
    verified = [sum(point["verifications"]) for point in model.notes["measured"] if point["draft_depth"]]
    assert len(verified) == 3 and any(verified)
    assert len(model.acceptance.at_least) == 2
    assert 1 >= model.acceptance.at_least[0] >= model.acceptance.at_least[1] >= 0


def test_four_requests_together_are_faster_than_one_after_another(profile):
    model, _ = profile
    one, four = model.tau([1, 4])
    assert 0 < one <= four < 4 * one
