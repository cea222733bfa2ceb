"""`tailsieve dashboard`: its structure, which needs no login, and what is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb

from tailsieve_rl import cli
from tailsieve_rl.telemetry import dashboard
from tailsieve_rl.telemetry.dashboard import ALWAYS, DashboardError, LoggedRun, check_comparable, save_workspace
from tailsieve_rl.telemetry.sections import SECTIONS
from tailsieve_rl.telemetry.wandb_views import comparison, workspace_sections

TITLES = ["Step time", "Allocation", "Quality", "Speculation (runs that speculate)", "Engines"]


def test_a_dry_run_tells_every_section_panel_and_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["dashboard", "--project", "p", "--entity", "e", "--report", "a", "b", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "workspace TailSieve in e/p"
    assert [line.strip() for line in lines if line.startswith("  ") and line[2] != " "] == TITLES
    for section in SECTIONS:
        for panel in section.panels:
            assert f"    {panel.title}: {', '.join(panel.metrics)}" in lines
    assert lines[-1] == "report b against a in e/p: the same sections, of these two runs"


def test_the_workspace_has_the_sections_with_a_plot_for_each_panel() -> None:
    models = [section._to_model().model_dump(by_alias=True) for section in workspace_sections()]
    assert [model["name"] for model in models] == TITLES
    for section, model in zip(SECTIONS, models, strict=True):
        assert [(p["config"]["chartTitle"], tuple(p["config"]["metrics"])) for p in model["panels"]] == [
            (panel.title, panel.metrics) for panel in section.panels
        ]
        assert {panel["config"]["xAxis"] for panel in model["panels"]} == {"_step"}


def test_the_report_shows_the_same_sections_of_two_runs_only() -> None:
    report = comparison("e", "p", "b against a", ["id1", "id2"])
    headings, grids = report.blocks[::2], report.blocks[1::2]
    assert [heading.text for heading in headings] == TITLES
    assert [len(grid.panels) for grid in grids] == [len(section.panels) for section in SECTIONS]
    assert all("id1" in str(runset.filters) and "id2" in str(runset.filters) for g in grids for runset in g.runsets)
    for grid in grids:
        places = {(panel.layout.x, panel.layout.y) for panel in grid.panels}
        assert len(places) == len(grid.panels) and all(x + 8 <= 24 for x, _ in places)


def test_without_a_login_it_says_so_in_one_line(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB")} | {"HOME": str(tmp_path)}
    code = "import sys; from tailsieve_rl.cli import main; sys.exit(main(['dashboard', '--project', 'p']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "tailsieve: error: there is no wandb login: run `wandb login`, set WANDB_API_KEY, or try --dry-run"
    ]


def _run(name: str, groups: int = 8, model: str = "m", metrics: tuple[str, ...] = ALWAYS) -> LoggedRun:
    rollout = {"n": 4, "name": "vllm"}
    config = {"data": {"train_batch_size": groups}, "actor_rollout_ref": {"rollout": rollout, "model": {"path": model}}}
    return LoggedRun(f"id-{name}", name, config, frozenset(metrics))


@pytest.mark.parametrize(
    ("other", "says"), [({"groups": 16}, "groups_per_step is 8 in one, 16"), ({"model": "x/y"}, "model is m in one, y")]
)
def test_runs_of_different_work_are_not_compared(other: Mapping[str, Any], says: str) -> None:
    with pytest.raises(DashboardError, match=f"a and b cannot be compared: {says}"):
        check_comparable([_run("a"), _run("b", **other)])


def test_a_metric_that_a_run_lacks_is_named_once() -> None:
    lacking = tuple(name for name in ALWAYS if name != "tailsieve/gen_time_s")
    assert check_comparable([_run("a", metrics=lacking), _run("b")]) == ["note: a has not logged tailsieve/gen_time_s"]


class _Server:
    """wandb's views of a project, behind the two queries that wandb-workspaces sends."""

    def __init__(self) -> None:
        self.views: dict[str, dict[str, Any]] = {}

    def execute(self, _: Any, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        if "upsertView" in query:
            view = {"id": f"id{len(self.views)}", **variables}
            self.views[view["name"]] = view
            return {"upsertView": {"view": view}}
        if variables["projectName"] != "p":
            return {"project": None}
        found = self.views.get(variables["viewName"])
        return {"project": {"allViews": {"edges": [] if found is None else [{"node": found}]}}}

    @property
    def sections(self) -> list[str]:
        [view] = self.views.values()
        return [section["name"] for section in json.loads(view["spec"])["section"]["panelBankConfig"]["sections"]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> _Server:
    from wandb_workspaces.workspaces import interface, internal

    server = _Server()
    monkeypatch.setattr(wandb, "Api", SimpleNamespace)
    monkeypatch.setattr(internal, "execute_graphql", server.execute)
    monkeypatch.setattr(interface, "get_app_url", lambda _: "https://server")
    return server


def test_a_second_call_updates_the_workspace_and_keeps_what_the_user_added(server: _Server) -> None:
    assert save_workspace("e", "p") == "workspace https://server/e/p?nw=tailsieve"
    [view] = server.views.values()
    spec = json.loads(view["spec"])
    spec["section"]["panelBankConfig"]["sections"][0]["panels"] = []
    mine = {**spec["section"]["panelBankConfig"]["sections"][1], "name": "mine"}
    spec["section"]["panelBankConfig"]["sections"].append(mine)
    view["spec"] = json.dumps({**spec, "version": -1})
    save_workspace("e", "p")
    assert server.sections == [*TITLES, "mine"] and [v["id"] for v in server.views.values()] == ["id0"]
    sections = json.loads(server.views["nw-tailsieve-v"]["spec"])["section"]["panelBankConfig"]["sections"]
    assert len(sections[0]["panels"]) == len(SECTIONS[0].panels)


def test_a_project_that_is_not_there_is_one_line(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "_login", lambda: SimpleNamespace(default_entity="e"))
    with pytest.raises(DashboardError, match="wandb: Project `e/nope` not found"):
        dashboard.dashboard("nope", None, None, dry_run=False)


@pytest.mark.parametrize(
    ("ids", "says"), [([], "has no such run"), (["x1", "x2"], "has 2 runs of this name, give an id: x1, x2")]
)
def test_a_name_must_mean_one_run(server: _Server, monkeypatch: pytest.MonkeyPatch, ids: list[str], says: str) -> None:
    api = SimpleNamespace(default_entity="e", runs=lambda *_, **__: [SimpleNamespace(id=i) for i in ids])
    monkeypatch.setattr(dashboard, "_login", lambda: api)
    with pytest.raises(DashboardError, match=f"--report a: e/p {says}"):
        dashboard.dashboard("p", None, ["a", "b"], dry_run=False)
    assert server.views == {}
