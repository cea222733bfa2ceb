"""Drafts that a pool's guard has ended are said once, loudly, by the trainer."""

from types import SimpleNamespace
from typing import Any

import pytest

from tailsieve_rl.config.speculation import SpeculationSettings
from tailsieve_rl.rollout.trainer import PPOTrainerTailSieve


def test_stale_drafts_are_a_warning_at_the_step_that_shows_them_and_not_again(caplog: pytest.LogCaptureFixture) -> None:
    report = {"stale_pools": 0.0}
    trainer: Any = SimpleNamespace(
        policy=SimpleNamespace(report=lambda state: report),
        settings=SimpleNamespace(speculation=SpeculationSettings()),
        global_steps=4,
        _stale_pools=0.0,
    )
    PPOTrainerTailSieve._warn_of_stale_drafts(trainer, None)
    assert not caplog.records
    report["stale_pools"] = 1.0
    for _ in range(2):
        PPOTrainerTailSieve._warn_of_stale_drafts(trainer, None)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "step 4: fewer than 0.1 of the first drafts were accepted in a pool" in record.getMessage()
