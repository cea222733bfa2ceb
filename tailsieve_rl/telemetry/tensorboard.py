"""Runs for TensorBoard: their steps as scalars, and the dashboards' sections as a layout of its Custom Scalars page."""

import re
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailsieve_rl.input_error import InputError
from tailsieve_rl.telemetry.runs import Run
from tailsieve_rl.telemetry.sections import SECTIONS

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

SUFFIX = ".tailsieve"
"""What the names of our event files end with: they are replaced when they are written again."""

LAYOUT = "layout"
"""Folder of the layout. In a folder that a job still writes to, TensorBoard would go on to the newer file, and read the
job's no more."""

LOGGED_AS = {
    "reward_mean": "critic/rewards/mean",
    "response_length_mean": "response_length/mean",
    "response_length_max": "response_length/max",
}
"""Metrics of steps.jsonl that verl's loggers have under verl's own names; the others are `tailsieve/...`."""


class TensorBoardError(InputError):
    """TensorBoard files cannot be written."""


def write_tensorboard(runs: Sequence[Run], folder: Path) -> list[str]:
    """Write the runs and the layout.

    A folder that verl's own TensorBoard logger has written to has the metrics already, and gets the layout only.

    Args:
        runs: each gets a folder of its name.
        folder: to be given to `tensorboard --logdir`.

    Returns:
        A line for each folder written to.

    Raises:
        TensorBoardError: if tensorboard is not installed, or the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise TensorBoardError(f"--tensorboard {folder}: is a file; give a folder")
    written, logged = [], None
    if any(not path.name.endswith(SUFFIX) for path in folder.rglob("events.out.tfevents.*")):
        written.append(f"{folder / LAYOUT} (layout only: {folder} has runs that TensorBoard's logger wrote)")
    else:
        logged = {_logged_as(key) for run in runs for step in run.steps for key in step}
        for run in runs:
            with _writer(folder / run.name) as writer:
                _scalars(writer, run)
            written.append(str(folder / run.name))
        written.append(str(folder / LAYOUT))
    with _writer(folder / LAYOUT) as writer:
        writer.add_custom_scalars(layout(logged))
    return written


def layout(logged: Set[str] | None = None) -> dict[str, dict[str, list[Any]]]:
    """The sections as torch's SummaryWriter takes them; a tag is a pattern that a metric's name must match whole.

    Args:
        logged: names of the metrics that there are: panels without any are left out. None: keep all.
    """
    panels: dict[str, dict[str, list[Any]]] = {
        section.title: {
            panel.title: ["Multiline", [f"{re.escape(name)}$" for name in panel.metrics]]
            for panel in section.panels
            if logged is None or not logged.isdisjoint(panel.metrics)
        }
        for section in SECTIONS
    }
    return {title: found for title, found in panels.items() if found}


def _writer(folder: Path) -> "SummaryWriter":
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise TensorBoardError("--tensorboard needs tensorboard: pip install 'tailsieve-rl[report]'") from None
    for old in folder.glob(f"events.out.tfevents.*{SUFFIX}"):
        old.unlink()
    return SummaryWriter(str(folder), filename_suffix=SUFFIX)


def _scalars(writer: "SummaryWriter", run: Run) -> None:
    for step in run.steps:
        for key, value in step.items():
            if key != "step" and isinstance(value, int | float):
                writer.add_scalar(_logged_as(key), value, step["step"])


def _logged_as(key: str) -> str:
    return LOGGED_AS.get(key, f"tailsieve/{key}")
