"""`tailsieve dashboard`: a saved workspace of a wandb project, and a report that compares two of its runs.

Both are found again, the workspace by its address and the report by its title: a second call updates them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from tailsieve_rl.input_error import InputError
from tailsieve_rl.telemetry.runs import difference
from tailsieve_rl.telemetry.sections import SECTIONS

NAME = "TailSieve"
VIEW = "tailsieve"
"""The end of the workspace's address: .../PROJECT?nw=tailsieve."""

CONFIGURED = {
    "groups_per_step": "data.train_batch_size",
    "responses_per_group": "actor_rollout_ref.rollout.n",
    "backend": "actor_rollout_ref.rollout.name",
    "model": "actor_rollout_ref.model.path",
    "profile": "actor_rollout_ref.rollout.engine_kwargs.emulated.profile",
}
"""What runs that are compared must share, as verl's configuration, which it logs, names it."""

ALWAYS = tuple(dict.fromkeys(name for section in SECTIONS if not section.only for name in section.metrics()))
"""Metrics that every run in mode `tailsieve` logs, in the panels' order."""


class DashboardError(InputError):
    """The dashboard cannot be made."""


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A run of a wandb project: its id, its name, its configuration, the names of the metrics that it logged."""

    id: str
    name: str
    config: Mapping[str, Any]
    metrics: frozenset[str]


def dashboard(project: str, entity: str | None, compared: Sequence[str] | None, dry_run: bool) -> list[str]:
    """Create or update the workspace, and the report if runs are given.

    Args:
        project: wandb project.
        entity: user or team that owns it; None: the default one of the login.
        compared: two runs of it, by name or id; the first is the baseline.
        dry_run: only tell what would be created, without a login.

    Returns:
        Lines for the user.

    Raises:
        DashboardError: without a login, the project or one of the runs, or if the runs cannot be compared.
    """
    if dry_run:
        return described(f"{entity or '<default entity>'}/{project}", compared)
    api = _login()
    with _in_one_line():
        owner = entity or api.default_entity
        if owner is None:
            raise DashboardError("this wandb login has no default entity: give --entity")
        runs = [_run(api, f"{owner}/{project}", name) for name in compared or ()]
        notes = check_comparable(runs)
        lines = [save_workspace(owner, project)]
        if runs:
            lines.append(_save_report(api, owner, project, runs))
    return [*lines, *notes]


def described(path: str, compared: Sequence[str] | None) -> list[str]:
    """The sections, the panels and their metrics, a line each."""
    lines = [f"workspace {NAME} in {path}"]
    for section in SECTIONS:
        lines.append(f"  {section.heading}")
        lines += [f"    {panel.title}: {', '.join(panel.metrics)}" for panel in section.panels]
    if compared:
        lines.append(f"report {_title(compared)} in {path}: the same sections, of these two runs")
    return lines


def check_comparable(runs: Sequence[LoggedRun]) -> list[str]:
    """Refuse runs of different work, and say which metrics a run lacks.

    Raises:
        DashboardError: naming what differs.
    """
    for run in runs[1:]:
        differ = difference(_shared(runs[0].config), _shared(run.config))
        if differ:
            raise DashboardError(f"{runs[0].name} and {run.name} cannot be compared: {differ}")
    missing = {run.name: [name for name in ALWAYS if name not in run.metrics] for run in runs}
    return [f"note: {run} has not logged {', '.join(names)}" for run, names in missing.items() if names]


def save_workspace(entity: str, project: str) -> str:
    """Create the workspace, or renew our sections in the one that is there. Returns a line with its address."""
    from wandb_workspaces.workspaces import Workspace

    from tailsieve_rl.telemetry.wandb_views import workspace_sections

    sections = workspace_sections()
    try:
        workspace = Workspace.from_url(f"https://wandb.ai/{entity}/{project}?nw={VIEW}")
        ours = {section.name for section in sections}
        workspace.sections = [*sections, *(theirs for theirs in workspace.sections if theirs.name not in ours)]
    except ValueError as error:
        if "not found in project" not in str(error):  # it is the project that is not there
            raise
        workspace = Workspace(entity=entity, project=project, name=NAME, sections=sections)
        workspace._internal_name = f"nw-{VIEW}-v"  # a random one otherwise, by which it could not be found again
    return f"workspace {workspace.save().url}"


def _login() -> Any:
    import wandb

    if find_spec("wandb_workspaces") is None:
        raise DashboardError("dashboard needs wandb-workspaces: pip install 'tailsieve-rl[report]'")
    with _in_one_line():
        if not wandb.login(prompt=False):
            raise DashboardError("there is no wandb login: run `wandb login`, set WANDB_API_KEY, or try --dry-run")
        return wandb.Api()


@contextmanager
def _in_one_line() -> Iterator[None]:
    """What wandb and the network raise is of many classes that have nothing in common."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise DashboardError(f"wandb: {lines[0]}") from error


def _run(api: Any, path: str, name: str) -> LoggedRun:
    found = list(api.runs(path, filters={"$or": [{"display_name": name}, {"name": name}]}, lazy=False))
    if len(found) != 1:
        ids = ", ".join(run.id for run in found)
        raise DashboardError(
            f"--report {name}: {path} has {len(found)} runs of this name, give an id: {ids}"
            if found
            else f"--report {name}: {path} has no such run"
        )
    return LoggedRun(found[0].id, found[0].name, found[0].config, frozenset(found[0].summary_metrics))


def _shared(config: Mapping[str, Any]) -> dict[str, Any]:
    return {word: _at(config, key.split(".")) for word, key in CONFIGURED.items()}


def _at(config: Mapping[str, Any], keys: Iterable[str]) -> Any:
    value: Any = config
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _save_report(api: Any, entity: str, project: str, runs: Sequence[LoggedRun]) -> str:
    from tailsieve_rl.telemetry.wandb_views import comparison

    title = _title([run.name for run in runs])
    report = comparison(entity, project, title, [run.id for run in runs])
    report.id = next((old.id for old in api.reports(f"{entity}/{project}") if old.display_name == title), "")
    return f"report {report.save().url}"


def _title(names: Sequence[str]) -> str:
    return f"{names[1]} against {names[0]}"
