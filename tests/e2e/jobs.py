"""Real verl jobs in processes of their own, for tests that look at what they leave behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Job:
    """A job that ended.

    Attributes:
        out: its output folder (trainer.default_local_dir).
        returncode: its exit status; negative when it was killed.
        log: all that it printed.
    """

    out: Path
    returncode: int
    log: str

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "steps.jsonl").read_text().splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.out / "summary.json").read_text())

    @property
    def requests(self) -> list[dict[str, Any]]:
        return pq.read_table(self.out / "requests.parquet").to_pylist()

    def consumed(self) -> dict[int, set[str]]:
        """Step -> uids of the groups that it consumed."""
        groups: dict[int, set[str]] = {}
        for row in self.requests:
            if row["status"] == "consumed":
                groups.setdefault(row["step"], set()).add(row["uid"])
        return groups


def run_job(
    command: Sequence[str],
    out: Path,
    *,
    env: dict[str, str] | None = None,
    kill_when: Callable[[Path], bool] | None = None,
    timeout_s: float = 800,
) -> Job:
    """Run a job to its end, or until `kill_when(out)` holds; nothing of it is left running.

    Args:
        command: arguments of the interpreter, `-m verl.trainer.main_ppo ...`.
        out: the job's output folder.
        env: variables beside the test's own.
        kill_when: asked five times a second; when it holds, the whole job is killed without warning.
        timeout_s: after which the job is killed and the test fails.
    """
    ray_tmp = tempfile.mkdtemp(prefix="ts")
    out.mkdir(parents=True, exist_ok=True)
    log = out / "log.txt"
    with open(log, "w") as file:
        process = subprocess.Popen(
            [sys.executable, *command, f"+ray_kwargs.ray_init._temp_dir={ray_tmp}"],
            cwd=ROOT,
            env={**os.environ, "RAY_DEDUP_LOGS": "0", **(env or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + timeout_s
        try:
            while process.poll() is None and time.monotonic() < deadline:
                if kill_when is not None and kill_when(out):
                    break
                time.sleep(0.2)
            timed_out = time.monotonic() >= deadline
        finally:
            _kill_tree(process)
            shutil.rmtree(ray_tmp, ignore_errors=True)
    text = log.read_text(errors="replace")
    assert not timed_out, f"the job ran past {timeout_s} s; its output ends with\n{text[-3000:]}"
    return Job(out, process.returncode, text)


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """The job's own processes, by their ids. Ray's outlive a driver that is killed for some seconds."""
    tree = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    for child in tree:
        if child.is_running():
            child.kill()
    process.wait()
    psutil.wait_procs(tree, timeout=30)


def run_bench(recipe: str, out: Path, *overrides: str) -> Job:
    """Run a benchmark to its end; its results are in `out`."""
    command = ["-m", "tailsieve_rl.benchmark.command", "--config-name", recipe, f"bench.out={out}", *overrides]
    job = run_job(command, out)
    assert job.returncode == 0, job.log[-3000:]
    return job


def gsm8k(assets: Path, out: Path, *overrides: str) -> list[str]:
    """The GSM8K recipe on real prompts, cut down to 8 groups of 2 short responses a step, q = 2 and m = 1."""
    return [
        "-m",
        "tailsieve_rl.train",
        "--config-name",
        "cpu/gsm8k",
        f"data.train_files={assets}/train.parquet",
        f"data.val_files={assets}/val.parquet",
        f"actor_rollout_ref.model.path={assets}/model",
        f"trainer.default_local_dir={out}",
        "data.train_batch_size=8",
        "data.max_response_length=48",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "++trainer.v1.tailsieve.allocation.initial_groups=2",
        "++trainer.v1.tailsieve.allocation.initial_replicas=1",
        *overrides,
    ]
