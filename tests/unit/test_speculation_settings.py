"""Settings of speculation: what is refused, and what engines and policies are made of."""

import pytest

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import read_settings
from tailsieve_rl.rollout.policy_of import make_policy
from tailsieve_rl.rollout.speculation import engine_speculation
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import Setup

SETUP = Setup(groups=8, responses=2, replicas=4)
MTP = {"method": "mtp"}
KEY = "trainer.v1.tailsieve.speculation."


def _read(**speculation):
    return read_settings({"speculation": speculation})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "adaptive"}, "mode='adaptive': must be one of fixed, governed"),
        ({"tail": {"method": "eagle"}, "max_depth": 3}, "tail.method='eagle': must be one of mtp, dflash"),
        ({"bulk": {"depth": 2}}, "bulk.depth=2: nothing drafts there: give bulk.method"),
        ({"max_depth": 3}, "max_depth=3: nothing drafts: give tail.method or bulk.method"),
        ({"tail": MTP}, "max_depth=None: mode governed needs the deepest draft"),
        ({"tail": {**MTP, "depth": 2}, "max_depth": 3}, "tail.depth=2: mode governed chooses the depths"),
        ({"mode": "fixed", "tail": MTP}, "tail.depth=None: mode fixed needs the depth of each method"),
        ({"mode": "fixed", "tail": {**MTP, "depth": 5}, "max_depth": 4}, "tail.depth=5: must be at most max_depth = 4"),
        ({"mode": "fixed", "tail": {**MTP, "depth": 0}}, "tail.depth=0: must be 1 or more where something drafts"),
        ({"tail": {"method": "dflash"}, "max_depth": 3}, "drafter=None: method dflash needs the path"),
        ({"tail": MTP, "max_depth": 3, "drafter": "d"}, "drafter='d': method mtp has no drafting model"),
        (
            {"tail": {"method": "dflash"}, "bulk": {"method": "draft_model"}, "max_depth": 3, "drafter": "d"},
            "drafter='d': is one model, and dflash, draft_model need one each",
        ),
        ({"tail": MTP, "max_depth": 3, "min_acceptance": 1.0}, "min_acceptance=1.0: must be between 0 and below 1"),
    ],
)
def test_speculation_that_cannot_work_is_refused_by_its_key(given, message):
    with pytest.raises(SettingsError) as refused:
        _read(**given)
    assert str(refused.value).startswith(KEY + message[: message.index("=")])
    assert message in str(refused.value)


def test_without_a_method_the_policy_drafts_nothing():
    policy = make_policy(_read(), SETUP)
    assert policy.decide(policy.start(SETUP), 1).depths == DraftDepths()


def test_fixed_depths_are_decided_and_half_of_their_sum_under_uniform_routing():
    settings = _read(mode="fixed", tail={**MTP, "depth": 5}, bulk={**MTP, "depth": 3})
    policy = make_policy(settings, SETUP)
    assert policy.decide(policy.start(SETUP), 1).depths == DraftDepths(tail=5, bulk=3, uniform=4)
    assert settings.speculation.depth == 5


def test_a_pool_without_a_method_never_drafts():
    policy = make_policy(_read(tail=MTP, max_depth=4), SETUP)
    assert policy.off == {"bulk"}


def test_each_pool_has_its_own_drafter_where_the_methods_differ():
    settings = _read(tail={"method": "dflash"}, bulk=MTP, max_depth=3, drafter="drafters/d").speculation
    assert engine_speculation(settings, 1) == {
        "tail": {"method": "dflash", "num_speculative_tokens": 3, "model": "drafters/d"},
        "bulk": {"method": "mtp", "num_speculative_tokens": 3},
        "tail_replicas": 1,
        "depths": None,
    }


def test_engines_are_told_the_fixed_depths_and_none():
    fixed = _read(mode="fixed", tail={**MTP, "depth": 5}, bulk={**MTP, "depth": 3}).speculation
    assert engine_speculation(fixed, 1)["depths"] == [0, 3, 4, 5]


def test_all_replicas_have_the_only_drafter_so_that_any_of_them_can_be_a_tail_replica():
    started = engine_speculation(_read(tail=MTP, max_depth=3).speculation, 1)
    assert started["tail"] == started["bulk"] == {"method": "mtp", "num_speculative_tokens": 3}
