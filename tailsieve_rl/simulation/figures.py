"""The look of the figures; matplotlib is imported when the first one is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = {
    "uniform": "#8a8f98",
    "tail": "#d1495b",
    "bulk": "#30638e",
    "tailsieve": "#d1495b",
    "oracle": "#edae49",
    "good": "#3c896d",
    "other": "#6c5b7b",
}
_STYLE: Any = {
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


class NoMatplotlibError(RuntimeError):
    """Figures need matplotlib."""


@contextmanager
def figure(path: Path, rows: int = 1, columns: int = 1, size: tuple[float, float] = (4.2, 3.0)) -> Iterator[Any]:
    """Axes to draw on, (rows, columns) of them as a 2-D array; saved to `path` at the end.

    Args:
        path: of the PNG.
        rows, columns: of panels.
        size: width and height of a panel, inches.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise NoMatplotlibError("figures need matplotlib: pip install 'tailsieve-rl[report]'") from error
    with pyplot.rc_context(_STYLE):
        drawing, axes = pyplot.subplots(
            rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False, layout="constrained"
        )
        yield axes
        drawing.savefig(path)
        pyplot.close(drawing)
