"""`tailsieve report`: the page, the trace and the TensorBoard folder of runs."""

from collections.abc import Sequence
from pathlib import Path

from tailsieve_rl.input_error import InputError
from tailsieve_rl.telemetry.page.data import page_data
from tailsieve_rl.telemetry.page.render import render
from tailsieve_rl.telemetry.run_files import write_whole
from tailsieve_rl.telemetry.runs import read_runs
from tailsieve_rl.telemetry.tensorboard import write_tensorboard
from tailsieve_rl.telemetry.trace import trace as chrome_trace


class ReportError(InputError):
    """An option of `report` that cannot work."""


def report(
    folders: Sequence[str], out: str | None, trace: str | None, tensorboard: str | None, steps: str | None
) -> list[str]:
    """Write what is asked for.

    Args:
        folders: output folders of the runs; the first one is what the others are compared with.
        out: HTML file.
        trace: Chrome trace file.
        tensorboard: folder.
        steps: "A-B" or "A": steps whose timelines are drawn and traced; None: the page draws as many as fit.

    Returns:
        A line for each thing written.

    Raises:
        InputError: if an option cannot work, a folder holds no run, the runs cannot be compared, or a file cannot be
            written.
    """
    if not (out or trace or tensorboard):
        raise ReportError("report needs --out FILE, --trace FILE or --tensorboard DIR")
    for option, file in (("--out", out), ("--trace", trace)):
        if file is not None and Path(file).is_dir():
            raise ReportError(f"{option} {file}: is a folder; give a file")
    chosen = _range(steps)
    runs = read_runs(folders)
    texts = {}
    if out is not None:
        texts[out] = render(page_data(runs, chosen))
    if trace is not None:
        texts[trace] = chrome_trace(runs, chosen)
    written = list(texts) if tensorboard is None else [*texts, *write_tensorboard(runs, Path(tensorboard))]
    for file, text in texts.items():  # only now, so that nothing is written if something cannot be
        _write(Path(file), text)
    return written


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda partial: Path(partial).write_text(text, encoding="utf-8"))
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror}") from error


def _range(steps: str | None) -> range | None:
    if steps is None:
        return None
    first, _, last = steps.partition("-")
    if not (first.isdigit() and (last or first).isdigit() and int(first) <= int(last or first)):
        raise ReportError(f"--steps {steps}: must be one step, or a range such as 3-7")
    return range(int(first), int(last or first) + 1)
