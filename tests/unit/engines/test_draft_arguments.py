"""What speculation adds to an engine's arguments, for both ways in which verl takes a speculative configuration."""

import json
from types import SimpleNamespace

import pytest

from tailsieve_rl.engines.vllm import draft_depth
from tailsieve_rl.engines.vllm.draft_arguments import SCHEDULE, fill
from tailsieve_rl.input_error import InputError

NGRAM = {"method": "ngram", "num_speculative_tokens": 3}


def rollout(**changes) -> SimpleNamespace:
    values = {
        "mtp": None,
        "max_model_len": 512,
        "max_num_seqs": 64,
        "max_num_batched_tokens": 2048,
        "enforce_eager": False,
        "cudagraph_capture_sizes": None,
    }
    return SimpleNamespace(**(values | changes))


MTP = SimpleNamespace(enable=True, enable_rollout=True, method="mtp", num_speculative_tokens=4)


def test_without_speculation_nothing_is_added():
    arguments = {"draft_depths": [0, 1]}
    assert fill(arguments, rollout(), 4096, on_cpu=False) is None
    assert arguments == {}


@pytest.mark.parametrize("given", [NGRAM, json.dumps(NGRAM)])
def test_a_cpu_engine_gets_the_scheduler_the_metrics_and_room_for_drafts(given):
    arguments = {"speculative_config": given}
    drafting = fill(arguments, rollout(), 4096, on_cpu=True)
    assert (drafting.largest, drafting.live, drafting.has_weights) == (3, True, False)
    assert arguments == {
        "speculative_config": given,
        "scheduler_cls": draft_depth.SCHEDULER,
        "per_request_spec_decode_metrics": "summary",
        "max_model_len": 516,
        "max_num_batched_tokens": 2048,
    }


def test_verls_own_mtp_settings_count_and_engine_arguments_go_before_them():
    drafting = fill({}, rollout(mtp=MTP), 4096, on_cpu=True)
    assert (drafting.largest, drafting.has_weights) == (4, True)
    arguments = {"speculative_config": {"num_speculative_tokens": 2}}
    assert fill(arguments, rollout(mtp=MTP), 4096, on_cpu=True).largest == 2


def test_a_gpu_engine_gets_a_schedule_and_capture_sizes_for_the_depths_in_use():
    arguments = {"draft_depths": [0, 1], "compilation_config": '{"cudagraph_mode": "FULL"}'}
    fill(arguments, rollout(mtp=MTP), 4096, on_cpu=False)
    assert "draft_depths" not in arguments
    assert arguments["speculative_config"] == {SCHEDULE: [[1, 1, 0], [2, 2, 1], [3, 64, 4]]}
    compilation = arguments["compilation_config"]
    assert compilation["cudagraph_mode"] == "FULL"
    assert {1, 64, 2, 128, 5, 320} <= set(compilation["cudagraph_capture_sizes"])


@pytest.mark.parametrize("own", [{"cudagraph_capture_sizes": [8]}, {"enforce_eager": True}])
def test_the_users_capture_sizes_stay(own):
    arguments = {"speculative_config": NGRAM}
    fill(arguments, rollout(**own), 4096, on_cpu=False)
    assert "compilation_config" not in arguments
    assert [entry[2] for entry in arguments["speculative_config"][SCHEDULE]] == [0, 1, 2, 3]


def test_the_users_schedule_stays_and_its_drafts_are_counted():
    own = NGRAM | {SCHEDULE: [[1, 64, 2]]}
    arguments = {"speculative_config": own}
    drafting = fill(arguments, rollout(), 4096, on_cpu=False)
    assert (drafting.live, drafting.counted) == (False, True)
    assert arguments["speculative_config"] == own and arguments["scheduler_cls"] == draft_depth.BY_BATCH_SIZE


def test_the_users_scheduler_stays():
    arguments = {"speculative_config": NGRAM, "scheduler_cls": "a.B"}
    drafting = fill(arguments, rollout(), 4096, on_cpu=False)
    assert (drafting.live, drafting.counted, arguments["scheduler_cls"]) == (False, False, "a.B")


def test_all_requests_drafts_fit_one_step_and_the_context_is_not_stretched_beyond_the_models():
    arguments = {"speculative_config": NGRAM}
    fill(arguments, rollout(max_num_seqs=1024, max_model_len=512), 512, on_cpu=True)
    assert arguments["max_num_batched_tokens"] == 7 * 1024 and "max_model_len" not in arguments


@pytest.mark.parametrize("config", [{"method": "ngram"}, NGRAM | {"num_speculative_tokens": 0}])
def test_no_depth_is_refused(config):
    with pytest.raises(InputError, match="num_speculative_tokens must be given"):
        fill({"speculative_config": config}, rollout(), 4096, on_cpu=True)


def test_a_depth_in_use_beyond_the_largest_is_refused():
    with pytest.raises(InputError, match=r"draft_depths = \[0, 3, 5\] must lie between 0 and .* 3"):
        fill({"speculative_config": NGRAM, "draft_depths": [0, 5]}, rollout(), 4096, on_cpu=False)
