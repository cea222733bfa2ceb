"""The demo model, built by its own command and sampled on a real vLLM engine, behaves as the demo needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COUNTDOWN = Path(__file__).resolve().parents[2] / "examples" / "countdown"


def run(script: str, *arguments: object) -> None:
    command = [sys.executable, str(COUNTDOWN / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.fixture(scope="session")
def found(tmp_path_factory) -> dict[str, float]:
    """The statistics of 64 prompts with 8 responses each."""
    out = tmp_path_factory.mktemp("demo")
    run("build.py", "--out", out)
    run("check.py", "--model", out / "model", "--json", out / "statistics.json")
    return json.loads((out / "statistics.json").read_text())


def test_the_lengths_have_a_long_tail(found):
    assert found["p90"] >= 3 * found["p50"]
    assert found["longest"] >= 6 * found["p50"]


def test_some_responses_but_few_run_into_the_cap(found):
    assert 0.005 <= found["cap_share"] <= 0.04


def test_most_of_the_lengths_variance_comes_from_the_prompt(found):
    assert 0.55 <= found["prompt_variance_share"] <= 0.85


def test_the_model_is_right_often_enough_to_learn_and_wrong_often_enough(found):
    assert 0.30 <= found["accuracy"] <= 0.60
    assert found["mixed_group_share"] >= 0.7
