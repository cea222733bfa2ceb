"""The recorder of verl's own rollout, called as its workers do."""

import asyncio
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from unit.composed import config_of

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.rollout.timed import Recorder, TimedAgentLoopManager


def _run(out: Path, first: int, last: int) -> None:
    """Steps of one group of two responses, from a checkpoint of the step before the first."""

    async def steps() -> None:
        recorder = Recorder(
            config_of(
                "cpu/countdown_verl_sync",
                f"trainer.default_local_dir={out}",
                "data.train_batch_size=1",
                "actor_rollout_ref.rollout.n=2",
                "trainer.total_training_steps=null",
            )
        )
        for step in range(first, last + 1):
            await recorder.begin(step)
            for session in range(2):
                await recorder.finished("uid", 0, session, "replica", 0.0, 3, 5, (step - 1, step - 1))
                await recorder.scored(1.0)

    asyncio.run(steps())


def test_a_resumed_baseline_keeps_the_steps_before_its_checkpoint(tmp_path: Path) -> None:
    _run(tmp_path, 1, 3)
    _run(tmp_path, 3, 4)
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert pq.read_table(tmp_path / "requests.parquet")["step"].to_pylist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 4


def test_lengths_of_a_workload_are_refused_and_not_left_out() -> None:
    config = config_of("cpu/countdown_verl_sync", "++trainer.v1.tailsieve.replay_workload.name=math")
    with pytest.raises(SettingsError, match=r"replay_workload.name.*give replay_lengths"):
        TimedAgentLoopManager(config, None)
