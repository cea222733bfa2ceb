"""Progress of a job's runs, from the result files that they write."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

LOOK_S = 2.0


@contextlib.contextmanager
def shown(command: str, steps: Mapping[str, int], out: Path) -> Iterator[None]:
    """Tell on stderr, while the block runs, which steps are done.

    Args:
        command: begins every line.
        steps: of each run, by the name of its folder.
        out: folder of those folders.
    """
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(command, steps, out, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(command: str, steps: Mapping[str, int], out: Path, over: threading.Event) -> None:
    told: dict[str, int] = {}
    last_look = False
    while not last_look:
        last_look = over.wait(LOOK_S)
        for name, count in steps.items():
            done = _done(out / name / "steps.jsonl")
            if done > told.get(name, 0):
                told[name] = done
                print(f"{command}: {name}: {done} of {count} steps", file=sys.stderr, flush=True)


def _done(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0
