"""An engine that calibrate starts: its arguments, what is said when it fails, and that nothing of it is left behind."""

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from tailsieve_rl.calibration import started
from tailsieve_rl.calibration.client import EngineError
from tailsieve_rl.calibration.settings import Settings

SETTINGS = Settings("model", Path("p.json"), draft_depths=(0, 2), speculative={"method": "ngram"})
ANSWERS = """
import http.server, subprocess, sys
DEAF = "import signal, time; signal.signal(2, signal.SIG_IGN); print(flush=True); time.sleep(99)"
child = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
child.stdout.readline()
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Healthy).serve_forever()
"""


def in_block(monkeypatch, script, action):
    """Start the script as the engine and do something with it."""
    monkeypatch.setattr(started, "COMMAND", (sys.executable, "-c", script))

    async def run():
        async with started.engine(["model"]) as client:
            return action(client)

    return asyncio.run(run())


def test_an_engine_has_room_for_the_largest_batch_and_the_users_arguments_come_last():
    settings = Settings("model", Path("p.json"), batch_sizes=(1, 8), tokens=32, engine_arguments=("--dtype", "auto"))
    on_gpu = started.arguments(settings, 0, on_cpu=False)
    assert on_gpu == ["model", "--max-num-seqs", "8", "--max-model-len", "48", "--dtype", "auto"]
    on_cpu = started.arguments(settings, 0, on_cpu=True)
    assert {"--enforce-eager", "float32"} < set(on_cpu)
    assert on_cpu[-2:] == ["--dtype", "auto"]


def test_an_engine_drafts_as_deep_as_asked():
    assert "--speculative-config" not in started.arguments(SETTINGS, 0, on_cpu=True)
    assert '{"method": "ngram", "num_speculative_tokens": 2}' in started.arguments(SETTINGS, 2, on_cpu=False)


def test_an_engine_that_dies_is_reported_with_the_end_of_its_log(monkeypatch):
    script = "import sys; print(*range(99), sep='\\n'); print('no memory', file=sys.stderr); sys.exit(3)"
    with pytest.raises(EngineError) as error:
        in_block(monkeypatch, script, lambda _: None)
    *log, line = str(error.value).splitlines()
    assert line == "the engine ended with code 3 before it was ready"
    assert "no memory" in log
    assert len(log) == started.TAIL_LINES


@pytest.mark.parametrize("fails", [None, EngineError("no"), KeyboardInterrupt()])
def test_nothing_of_an_engine_is_left_behind(monkeypatch, fails):
    seen = []

    def action(_):
        seen.extend(psutil.Process(os.getpid()).children(recursive=True))
        if fails is not None:
            raise fails

    if fails is None:
        in_block(monkeypatch, ANSWERS, action)
    else:
        with pytest.raises(type(fails)):
            in_block(monkeypatch, ANSWERS, action)
    assert len(seen) == 2
    _, alive = psutil.wait_procs(seen, timeout=10)
    assert alive == []
