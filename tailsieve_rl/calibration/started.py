"""An engine of our own for the time of a measurement: `vllm serve` as a child, stopped whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from tailsieve_rl.calibration.client import Client, EngineError
from tailsieve_rl.calibration.settings import Settings

START_TIMEOUT_S = 1800.0
STOP_TIMEOUT_S = 20.0
POLL_S = 0.2
TAIL_LINES, TAIL_WIDTH = 15, 240
COMMAND = (sys.executable, "-m", "tailsieve_rl.engines.vllm.serve")
ON_CPU = ("--dtype", "float32", "--enforce-eager")
"""What recipes/cpu gives the trainer's engine."""

IN_PROCESS = ("--distributed-executor-backend", "uni")
"""What an engine of one rank gets on a CPU beside it."""

CPU_DRAFTS = "tailsieve_rl.engines.vllm.cpu_drafts.DraftExtension"


def prepare() -> bool:
    """Set the variables of a CPU run, as in training, where there is no accelerator; return whether that is so."""
    importlib.import_module("tailsieve_rl.plugin")  # it decides, and sets them
    return os.environ.get("VERL_PLATFORM") == "cpu"


def arguments(settings: Settings, draft_depth: int, on_cpu: bool) -> list[str]:
    """Of `vllm serve`, the model first; the user's come last and win."""
    found = [settings.model, "--max-num-seqs", str(settings.batch_sizes[-1])]
    if not settings.prompts:  # whose length we do not know
        found += ["--max-model-len", str(settings.prompt_tokens + settings.tokens)]
    if on_cpu:
        # Also without drafts: it mends the delta nets of Qwen3.5.
        found += [*ON_CPU, "--worker-extension-cls", CPU_DRAFTS]
        if not any(argument.startswith(("--tensor-parallel-size", "-tp")) for argument in settings.engine_arguments):
            found += IN_PROCESS
    if draft_depth:
        drafts = {**(settings.speculative or {}), "num_speculative_tokens": draft_depth}
        found += ["--speculative-config", json.dumps(drafts)]
    return [*found, *settings.engine_arguments]


@contextlib.asynccontextmanager
async def engine(serve: list[str]) -> AsyncIterator[Client]:
    """A client of an engine that is ready.

    Raises:
        EngineError: if the engine fails, with the end of its log; of anything in the block too.
    """
    port = _free_port()
    command = [*COMMAND, *serve, "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile() as log, _running(command, log) as child:
        async with Client(f"http://127.0.0.1:{port}") as client:
            try:
                await _ready(client, child)
                yield client
            except EngineError as error:
                raise EngineError(f"{_tail(log)}\n{error}") from None


async def _ready(client: Client, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not await client.healthy():
        if child.poll() is not None:
            raise EngineError(f"the engine ended with code {child.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise EngineError(f"the engine was not ready within {START_TIMEOUT_S:g} s")
        await asyncio.sleep(POLL_S)


@contextlib.contextmanager
def _running(command: list[str], log: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The child in a process group of its own, which ends with the block, or with a SIGTERM to us."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    environment = os.environ | {"VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": _python_path()}
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # what the child left behind
        child.wait()
        signal.signal(signal.SIGTERM, before)


def _python_path() -> str:
    """So that the child finds this package, installed or not."""
    ours = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    return "\n".join(line[:TAIL_WIDTH] for line in lines[-TAIL_LINES:])
