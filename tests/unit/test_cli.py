"""The command line: instant help, one clear line on bad input, right exit codes, verl's trainer behind `train`."""

import logging
import os
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import tailsieve_rl
from tailsieve_rl import cli, hydra_app
from tailsieve_rl.config.blocks import SettingsError

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "ray", "verl", "vllm", "hydra", "numpy"}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """`train` hands its arguments to Hydra in sys.argv and sets environment variables; Hydra configures logging."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    environment, handlers, level = dict(os.environ), logging.root.handlers[:], logging.root.level
    yield
    os.environ.clear()
    os.environ.update(environment)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def verl_main(monkeypatch):
    """A stand-in for verl's trainer: what it is called with is kept, and it does what `outcome` says."""
    stand_in = types.SimpleNamespace(configs=[], outcome=lambda: None)

    def main(config):
        stand_in.configs.append(config)
        stand_in.outcome()

    module = types.ModuleType("verl.trainer.main_ppo")
    module.main = main
    monkeypatch.setitem(sys.modules, "verl.trainer.main_ppo", module)
    monkeypatch.setattr(import_module("verl.trainer"), "main_ppo", module, raising=False)
    return stand_in


def run(capsys, *arguments):
    """Exit code, output, and the lines on standard error."""
    try:
        code = cli.main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from tailsieve_rl import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print(sorted({HEAVY} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [[], *([name] for name in "train bench doctor compare report dashboard calibrate predict data evaluate".split())],
)
def test_every_help_has_an_example(capsys, command):
    code, out, _ = run(capsys, *command, "--help")
    assert code == 0
    assert f"example: {' '.join(['tailsieve', *command])}" in out


def test_train_help_names_the_recipes(capsys):
    assert "cpu/countdown, cpu/countdown_verl_sync, cpu/distillation, cpu/gsm8k" in run(capsys, "train", "--help")[1]


def test_version(capsys):
    assert run(capsys, "--version")[:2] == (0, f"tailsieve-rl {tailsieve_rl.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["nonsense"], "'nonsense'"),
        (["compare"], "RUN"),
        (["compare", "no/such/run"], "no/such/run"),
        (["report", "no/such/run", "--out", "page.html"], "no/such/run"),
        (["dashboard", "--dry-run"], "--project"),
        (["train", "--config-name", "cpu/nope"], "'cpu/nope'"),
        (["train", "--config-name", "cpu/countdown", "trainer.nope=1"], "'trainer.nope'"),
        (["train", "--config-name", "cpu/countdown", "trainer=[1"], "'[1'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, says):
    code, out, err = run(capsys, *arguments)
    assert (code, out, len(err)) == (2, "", 1)
    assert err[0].startswith("tailsieve: error: ")
    assert says in err[0]


def test_an_unknown_option_of_train_is_named_in_the_last_line(capsys):
    code, _, err = run(capsys, "train", "--nope")
    assert code == 2
    assert "--nope" in err[-1]


def test_doctor_passes_its_verdict_on(capsys, monkeypatch):
    monkeypatch.setattr(import_module("tailsieve_rl.doctor"), "run", lambda: 1)
    assert run(capsys, "doctor")[0] == 1


def test_compare_passes_the_runs_on(capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(import_module("tailsieve_rl.telemetry.compare"), "compare", seen.append)
    assert run(capsys, "compare", "a", "b")[0] == 0
    assert seen == [["a", "b"]]


def recipe(tmp_path, *overrides):
    out = f"trainer.default_local_dir={tmp_path}"
    return ["train", "--config-name", "cpu/countdown", out, *overrides]


def test_train_gives_verl_the_composed_recipe(capsys, tmp_path, verl_main):
    assert run(capsys, *recipe(tmp_path, "trainer.total_training_steps=3"))[0] == 0
    (config,) = verl_main.configs
    assert config.trainer.total_training_steps == 3
    assert config.trainer.v1.trainer_mode == "tailsieve"
    assert config.actor_rollout_ref.rollout.n == 8
    assert "hydra" not in config


def test_train_loads_the_plugin_and_quiets_a_cpu(capsys, tmp_path, verl_main, monkeypatch):
    monkeypatch.setenv("VERL_PLATFORM", "cpu")
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "INFO")
    monkeypatch.delenv("TQ_NUM_THREADS", raising=False)
    run(capsys, *recipe(tmp_path))
    assert "tailsieve_rl.plugin" in sys.modules
    assert os.environ["TQ_NUM_THREADS"] == "1"
    assert os.environ["VLLM_LOGGING_LEVEL"] == "INFO", "what the user has set stays"


def test_a_setting_that_cannot_work_stops_before_verl(capsys, tmp_path, verl_main):
    code, _, err = run(capsys, *recipe(tmp_path, "++trainer.v1.tailsieve.warmup=perhaps"))
    assert code == 2
    assert err == ["tailsieve: error: trainer.v1.tailsieve.warmup='perhaps': must be one of reserve, overlaunch, none"]
    assert verl_main.configs == []


def test_verls_own_modes_are_not_held_to_our_rules(capsys, tmp_path, verl_main):
    code, *_ = run(capsys, *recipe(tmp_path, "trainer.v1.trainer_mode=sync", "actor_rollout_ref.rollout.n=1"))
    assert (code, len(verl_main.configs)) == (0, 1)


def test_a_failed_run_ends_with_its_cause(capsys, tmp_path, verl_main):
    def fail():
        raise RuntimeError("the disk\nis full\n\nand more")

    verl_main.outcome = fail
    code, _, err = run(capsys, *recipe(tmp_path))
    assert code == 1
    assert any(line.startswith("Traceback") for line in err)
    assert err[-1] == "tailsieve: error: RuntimeError: the disk is full"


def test_the_cause_is_found_behind_rays_wrappers(capsys, tmp_path, verl_main):
    from ray.exceptions import RayTaskError

    trace = "Traceback (most recent call last):\n  ..."
    error = SettingsError("data.train_batch_size", 64, "use a smaller batch")

    def fail():
        inner = RayTaskError("Actor.call", trace, error).as_instanceof_cause()  # of both classes, as ray.get raises it
        raise RayTaskError("TaskRunnerV1.run", trace, inner)

    verl_main.outcome = fail
    code, _, err = run(capsys, *recipe(tmp_path))
    assert code == 2
    assert err[-1] == "tailsieve: error: data.train_batch_size=64: use a smaller batch"
    assert not any(line.startswith("Traceback") for line in err)


def test_an_actor_that_did_not_start_says_why():
    from ray.exceptions import ActorDiedError, RayTaskError

    cause = RayTaskError("__init__", "Traceback (most recent call last):\n  ...\nOSError: no room", OSError("no room"))
    assert hydra_app._one_line(ActorDiedError(cause)) == "OSError: no room"


def test_an_interrupted_run_is_no_traceback(capsys, tmp_path, verl_main):
    def interrupt():
        raise KeyboardInterrupt

    verl_main.outcome = interrupt
    code, _, err = run(capsys, *recipe(tmp_path))
    assert (code, err[-1]) == (130, "tailsieve: error: interrupted")


def test_any_command_that_is_interrupted_is_no_traceback(capsys, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tailsieve_rl.calibration.command.calibrate", interrupt)
    (tmp_path / "config.json").write_text("{}")
    code, _, err = run(capsys, "calibrate", "--model", str(tmp_path), "--out", str(tmp_path / "profile.json"))
    assert (code, err[-1]) == (130, "tailsieve: error: interrupted")


def test_the_module_is_the_same_command():
    command = [sys.executable, "-m", "tailsieve_rl.train", "--config-name", "cpu/countdown", "--cfg", "job"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert OmegaConf.create(done.stdout).trainer.v1.trainer_mode == "tailsieve"
