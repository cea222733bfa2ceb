"""Event files, read back."""

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2, metadata
from torch.utils.tensorboard import SummaryWriter

from tailsieve_rl import cli
from tailsieve_rl.telemetry.sections import SECTIONS

from .written import write_run


def _events(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def _charts(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Section -> chart -> patterns of its tags."""
    [event] = _events(folder).Tensors(metadata.CONFIG_SUMMARY_TAG)
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    return {
        section.title: {chart.title: list(chart.multiline.tag) for chart in section.chart}
        for section in layout.category
    }


def test_a_runs_steps_are_scalars_under_the_names_of_verls_loggers(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=3, reward_mean=0.25, off_policy_trajectories=0)
    for _ in range(2):  # written again, it replaces what it wrote
        assert cli.main(["report", str(run), "--tensorboard", str(tmp_path / "board")]) == 0
    events = _events(tmp_path / "board/run")
    assert [(event.step, event.value) for event in events.Scalars("critic/rewards/mean")] == [
        (i, 0.25) for i in (1, 2, 3)
    ]
    assert {"tailsieve/q", "tailsieve/gen_time_s", "response_length/mean"} <= set(events.Tags()["scalars"])
    charts = _charts(tmp_path / "board/layout")
    assert charts["Allocation"]["q, groups of the tail pool"] == ["tailsieve/q$", "tailsieve/proposed_q$"]
    assert list(charts["Speculation"]) == ["Draft depth, tokens"], "this run has no drafts"


def test_a_folder_of_verls_own_logger_gets_the_whole_layout_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", steps=1)
    with SummaryWriter(str(tmp_path / "board/project/experiment")) as writer:
        writer.add_scalar("tailsieve/q", 3, 1)
    assert cli.main(["report", str(run), "--tensorboard", str(tmp_path / "board")]) == 0
    assert "layout only" in capsys.readouterr().out
    assert not (tmp_path / "board/run").exists()
    charts = _charts(tmp_path / "board/layout")
    assert {title: len(found) for title, found in charts.items()} == {s.title: len(s.panels) for s in SECTIONS}
