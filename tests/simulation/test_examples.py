"""The scripts of examples/ run, and say what their pages say. The agent loop runs in tests/e2e/test_agent_loops.py."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/add_a_policy.md").read_text(encoding="utf-8")


def run(script: str, *arguments) -> None:
    runpy.run_path(str(ROOT / f"examples/{script}.py"))["main"](*arguments)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulated")
    run("simulate_policy", out, 24)
    return out


def test_simulated_policies_leave_result_files_that_can_be_compared(simulated, capsys):
    run("compare_runs", simulated / "uniform", simulated / "tailsieve")
    table = capsys.readouterr().out
    idle, thrown_away = (re.search(rf"{name}\s+(\S+)\s+(\S+)", table) for name in ("nothing to do", "thrown away"))
    assert float(idle[2]) < float(idle[1])
    assert float(thrown_away[1]) == 0 < float(thrown_away[2])
    assert float(re.search(r"tailsieve is (\S+)x as fast", table)[1]) > 1.0


def test_a_trace_is_analyzed(capsys):
    run("analyze_trace")
    report = capsys.readouterr().out
    assert "330 responses, 30 prompts, 11 checkpoints" in report
    assert re.search(r"waits for one of \d\.\d x their mean length", report)


def test_the_policy_of_the_worked_example_is_faster_than_uniform_groups(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    run("write_policy")
    assert float(re.search(r"nudged .* (\S+)x", capsys.readouterr().out)[1]) > 1.0


def test_the_page_about_it_shows_the_code_that_runs():
    shown = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    code, *blocks = ("".join(text.split()) for text in ((ROOT / "examples/nudged.py").read_text("utf-8"), *shown))
    assert len(blocks) >= 3 and all(block in code for block in blocks)


def test_with_the_changes_of_the_page_it_has_a_name_for_settings_and_benchmarks(tmp_path):
    for folder in ("tailsieve_rl", "recipes"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "examples/nudged.py", tmp_path / "tailsieve_rl/routing/policies")
    [changes] = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)
    subprocess.run(["git", "apply", "-"], input=changes, text=True, cwd=tmp_path, check=True)
    code = (
        "from tailsieve_rl.config.settings import read_settings\n"
        "from tailsieve_rl.rollout.policy_of import make_policy\n"
        "from tailsieve_rl.routing.policies import Setup\n"
        "from tailsieve_rl.benchmark.command import main\n"
        "assert make_policy(read_settings({'policy': 'nudged'}), Setup(8, 2, 4)).name == 'nudged'\n"
        "main(['--config-name', 'bench/simulated', 'data.train_batch_size=16', 'actor_rollout_ref.rollout.n=4',\n"
        "      'trainer.v1.tailsieve_rollout={policies:[uniform,nudged],converge:2,rounds:2}'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and re.search(r"^nudged ", done.stdout, re.MULTILINE), done.stderr[-2000:]
