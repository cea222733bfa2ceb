"""The dashboards' sections as objects of wandb-workspaces: a workspace, and a report of two runs. Nothing is sent."""

from collections.abc import Sequence

import wandb_workspaces.reports.v2 as reports
import wandb_workspaces.workspaces as workspaces
from wandb_workspaces import expr

from tailsieve_rl.telemetry.sections import SECTIONS

COLUMNS = 3
"""Panels side by side."""

WIDTH, HEIGHT = 8, 7
"""Of a report's panel: its grid has 24 columns."""


def workspace_sections() -> list[workspaces.Section]:
    """What a workspace shows, open."""
    return [
        workspaces.Section(
            name=section.heading,
            panels=[_plot(panel.title, panel.metrics) for panel in section.panels],
            is_open=True,
            layout_settings=workspaces.SectionLayoutSettings(columns=COLUMNS, rows=-(-len(section.panels) // COLUMNS)),
        )
        for section in SECTIONS
    ]


def comparison(entity: str, project: str, title: str, ids: Sequence[str]) -> reports.Report:
    """A report with the same sections, of these runs only."""
    runset = reports.Runset(
        entity=entity, project=project, name="compared", filters=[expr.Metric("ID").isin(list(ids))]
    )
    blocks: list[reports.H2 | reports.PanelGrid] = []
    for section in SECTIONS:
        plots = [_plot(panel.title, panel.metrics, place) for place, panel in enumerate(section.panels)]
        blocks += [reports.H2(section.heading), reports.PanelGrid(runsets=[runset], panels=plots)]
    return reports.Report(entity=entity, project=project, title=title, blocks=blocks, width="fluid")


def _plot(title: str, metrics: Sequence[str], place: int = 0) -> reports.LinePlot:
    layout = reports.Layout(x=place % COLUMNS * WIDTH, y=place // COLUMNS * HEIGHT, w=WIDTH, h=HEIGHT)
    return reports.LinePlot(title=title, x="Step", y=list(metrics), layout=layout)
