"""The scheduler's part of a live draft depth, on a scheduler that does nothing else; and what it needs of vLLM."""

from types import SimpleNamespace

import pytest
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine.core import EngineCore

from tailsieve_rl.engines.vllm import draft_internals
from tailsieve_rl.engines.vllm.draft_depth import (
    AsyncDraftDepthScheduler,
    DraftDepth,
    DraftDepthScheduler,
    batch_size_scheduler,
    draft_depth_scheduler,
)
from tailsieve_rl.input_error import InputError


class Bare:
    """What the mix-in finds of vLLM's scheduler."""

    def __init__(self, largest: int, recurrent: bool = False, schedule: list[int] | None = None) -> None:
        self.scheduler_config = SimpleNamespace(max_num_seqs=4)
        self.num_spec_tokens = largest
        self.dynamic_sd_lookup = schedule
        self.has_mamba_layers = recurrent
        self.running = []
        self.resets = 0

    def reset_prefix_cache(self, reset_running_requests):
        assert reset_running_requests
        self.resets += 1

    def make_spec_decoding_stats(self, *arguments):
        return "vLLM's"


class Depth(DraftDepth, Bare):
    pass


def test_the_largest_depth_is_in_force_at_first_for_every_batch_size():
    scheduler = Depth(3)
    assert scheduler.dynamic_sd_lookup == [3] * 5 and scheduler.draft_depth() == 3


def test_a_schedule_that_is_kept_stays_in_force():
    schedule = [0, 3, 2, 1, 0]
    assert Depth(3, schedule=schedule, keep_schedule=True).dynamic_sd_lookup == schedule
    assert Depth(3, schedule=schedule).dynamic_sd_lookup == [3] * 5


def test_a_depth_holds_for_every_batch_size_until_the_next():
    scheduler = Depth(3)
    assert scheduler.set_draft_depth(1) == 1 and scheduler.dynamic_sd_lookup == [1] * 5
    for depth in (4, -1):
        with pytest.raises(ValueError, match=f"{depth} must lie between 0 and 3"):
            scheduler.set_draft_depth(depth)
    assert scheduler.draft_depth() == 1


def test_an_engine_without_drafts_has_depth_0_only():
    scheduler = Depth(0)
    assert scheduler.dynamic_sd_lookup is None and scheduler.set_draft_depth(0) == 0
    with pytest.raises(ValueError):
        scheduler.set_draft_depth(1)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("recurrent", "running"), [(True, True), (True, False), (False, True)])
def test_what_runs_in_a_recurrent_model_is_computed_anew_when_drafting_ends(recurrent, running, device):
    scheduler = Depth(3, recurrent)
    scheduler.running = ["request"] * running
    config = SimpleNamespace(device_config=SimpleNamespace(device_type=device))
    core = SimpleNamespace(scheduler=scheduler, vllm_config=config)
    for depth, anew in ((1, False), (0, recurrent and running and device != "cpu"), (0, False), (2, False)):
        scheduler.resets = 0
        assert EngineCore.set_draft_depth(core, depth) == EngineCore.get_draft_depth(core) == depth
        assert scheduler.resets == anew


def test_only_where_states_are_mended_a_schedule_ends_drafts_in_a_recurrent_model():
    for device, recurrent, refused in (("cuda", True, True), ("cuda", False, False), ("cpu", True, False)):
        config = SimpleNamespace(device_config=SimpleNamespace(device_type=device))
        core = SimpleNamespace(scheduler=Depth(3, recurrent), vllm_config=config)
        assert EngineCore.set_draft_depth(core, [3, 3, 1]) == (3, 3, 1)
        if refused:
            with pytest.raises(ValueError, match="cannot end drafts by the batch size"):
                EngineCore.set_draft_depth(core, [3, 3, 0])
        else:
            assert EngineCore.set_draft_depth(core, [3, 3, 0]) == (3, 3, 0)
            assert core.scheduler.dynamic_sd_lookup == [3, 3, 0, 0, 0]


def test_every_verified_draft_is_counted_without_those_that_a_grammar_ruled_out():
    scheduler = Depth(3)
    assert scheduler.make_spec_decoding_stats(None, 3, 2, None, "a") == "vLLM's"
    scheduler.make_spec_decoding_stats(None, 3, 0, {"a": 1}, "a")
    assert scheduler.count_drafts() == {"drafts": 2, "draft_tokens": 5, "accepted_tokens": 2}


def test_the_scheduler_is_of_the_kind_that_vllm_settled_on(monkeypatch):
    for kind in (DraftDepthScheduler, AsyncDraftDepthScheduler):
        monkeypatch.setattr(kind, "__init__", lambda self, vllm_config, **given: vars(self).update(given))
    for asynchronous, kind in ((False, DraftDepthScheduler), (True, AsyncDraftDepthScheduler)):
        config = SimpleNamespace(scheduler_config=SimpleNamespace(async_scheduling=asynchronous))
        assert type(draft_depth_scheduler(config)) is kind
        assert type(batch_size_scheduler(config)) is kind and batch_size_scheduler(config).keep_schedule


def test_the_installed_vllm_has_what_a_live_depth_rests_on():
    draft_internals.check()


def test_a_vllm_whose_internals_moved_is_refused_by_what_it_lacks(monkeypatch):
    monkeypatch.setattr(Scheduler, "schedule", lambda self: None)
    monkeypatch.delattr(Scheduler, "make_spec_decoding_stats")
    with pytest.raises(InputError, match=r"no Scheduler.schedule that reads dynamic_sd_lookup, no Scheduler.make_spec"):
        draft_internals.check()
