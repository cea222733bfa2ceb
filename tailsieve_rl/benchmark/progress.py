"""Progress of a job's runs, from the result files that they write."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tailsieve_rl.config.rollout_only import PolicyRun

LOOK_S = 2.0


@contextlib.contextmanager
def shown(runs: Sequence[PolicyRun], out: Path) -> Iterator[None]:
    """Tell on stderr, while the block runs, which steps are done of runs whose folders are in `out`."""
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(runs, out, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(runs: Sequence[PolicyRun], out: Path, over: threading.Event) -> None:
    told: dict[str, int] = {}
    last_look = False
    while not last_look:
        last_look = over.wait(LOOK_S)
        for run in runs:
            done = _steps(out / run.name / "steps.jsonl")
            if done > told.get(run.name, 0):
                told[run.name] = done
                count = run.last - run.first + 1
                print(f"bench: {run.name}: {done} of {count} steps", file=sys.stderr, flush=True)


def _steps(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
