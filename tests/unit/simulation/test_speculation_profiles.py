"""tau(b, d) of the modelled profiles: what drafts, what drafting and verifying cost, and what is accepted."""

import numpy as np
import pytest

from tailsieve_rl.simulation.profiles import PROFILES, profile
from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS, H100
from tailsieve_rl.simulation.profiles.drafters import dflash_drafter, mtp_head
from tailsieve_rl.simulation.profiles.roofline import BATCHES, moved_bytes_of_a_request, step_s
from tailsieve_rl.simulation.profiles.speculation import draft_s, profile_with_drafts

B = np.array(BATCHES)


@pytest.mark.parametrize("method", ["mtp", "dflash"])
@pytest.mark.parametrize("name", PROFILES)
def test_every_configuration_has_drafts_by_both_methods(name, method):
    model = profile_with_drafts(name, method, (1, 3), acceptance=0.8)
    assert model.depths == (0, 1, 3)
    assert model.kind == "modelled" and model.notes["drafts"] == method
    assert (model.tau(B) == profile(name).tau(B)).all()
    assert model.acceptance.at_least == pytest.approx((0.8, 0.64, 0.512))
    assert model.tau(1, 3) < model.tau(1, 0)


def test_drafters_have_the_sizes_that_are_published():
    assert dflash_drafter("qwen3.5-35b-a3b-tp2").parameters == pytest.approx(385_906_176, rel=1e-3)
    assert 2 * dflash_drafter("qwen3.5-4b").parameters / 2**30 == pytest.approx(1.18, abs=0.01)


def test_the_head_of_a_mixture_of_experts_has_experts_of_its_own():
    model, head = CONFIGURATIONS["qwen3.5-35b-a3b-tp2"].model, mtp_head("qwen3.5-35b-a3b-tp2")
    assert (head.layers.layers, head.layers.experts) == (1, model.experts)
    assert head.parameters > model.experts * 3 * model.hidden * model.expert_feed_forward
    b1, b64 = draft_s("qwen3.5-35b-a3b-tp2", "mtp", 3, 3)[[0, 6]]
    assert b64 > 1.5 * b1, "more requests read more of its experts"


def test_a_pass_is_the_verification_and_the_drafting():
    name = "qwen3.5-4b"
    never = profile_with_drafts(name, "mtp", (2,), acceptance=0.0)
    parts = step_s(CONFIGURATIONS[name], H100, tokens=3) + draft_s(name, "mtp", 2, 2)
    assert never.tau(B, 2) == pytest.approx(parts)
    always = profile_with_drafts(name, "mtp", (2,), acceptance=1.0)
    assert always.tau(B, 2) == pytest.approx(parts / 3)


def test_a_head_takes_a_pass_for_each_draft_and_a_block_takes_one():
    name = "qwen3.5-4b"
    one, four = (draft_s(name, "mtp", depth, depth)[0] for depth in (1, 4))
    assert four == pytest.approx(4 * one, rel=0.02)
    one, four = (draft_s(name, "dflash", depth, depth)[0] for depth in (1, 4))
    assert four == pytest.approx(one, rel=0.02)


def test_every_token_that_is_verified_leaves_a_state_of_the_linear_layers():
    hybrid, full = (CONFIGURATIONS[name].model for name in ("qwen3.5-4b", "qwen3-4b"))
    states = moved_bytes_of_a_request(hybrid, 2) - moved_bytes_of_a_request(hybrid, 1)
    assert states == 24 * 32 * 128 * 128 * 4
    assert moved_bytes_of_a_request(full, 4) == moved_bytes_of_a_request(full, 1)


def test_verifying_more_tokens_reads_more_experts():
    moe, dense = (step_s(CONFIGURATIONS[name], H100, 4) / step_s(CONFIGURATIONS[name], H100) for name in PROFILES[1::3])
    assert moe[0] > 1.5 and dense[0] < 1.1


def test_speculation_gains_most_where_few_requests_run_a_dense_model():
    model = profile_with_drafts("qwen3.5-2b", "mtp", (2, 4), acceptance=0.8)
    gain = {b: [float(model.tau(b) / model.tau(b, d)) for d in (2, 4)] for b in (1, 64, 256)}
    assert gain[1][0] > gain[64][0] > gain[256][0] > 1
    assert gain[1][1] > gain[1][0] and gain[256][1] < gain[256][0]


def test_drafts_that_are_made_but_not_verified_cost_too():
    own, runner = (profile_with_drafts("qwen3.5-4b", "mtp", (1, 4), runs=runs) for runs in (None, 4))
    assert runner.depths == (0, 1, 4)
    assert runner.tau(8, 4) == pytest.approx(own.tau(8, 4))
    assert runner.tau(8, 1) > 1.1 * own.tau(8, 1) and runner.tau(8, 0) > 1.1 * own.tau(8, 0)


@pytest.mark.parametrize("wrong", [{"acceptance": 1.1}, {"depths": (0,)}, {"depths": (5,), "runs": 4}])
def test_drafts_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"acceptance = .* must be from 0 to 1, depths = .* from 1"):
        profile_with_drafts("qwen3.5-4b", "mtp", **{"depths": (1,), "acceptance": 0.8, **wrong})
