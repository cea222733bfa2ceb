"""Draft depths in a policy's decisions, by pool; and drafts gone stale."""

from dataclasses import replace

import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus
from tailsieve_rl.routing.plan import Pool, plan_step
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.routing.policies.held import Held
from tailsieve_rl.routing.policies.named import named_policy
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import math_workload

from .steps import outcome_of

SETUP = Setup(groups=8, responses=2, replicas=4)
DEPTHS = DraftDepths(tail=4, bulk=2, uniform=3)
SPLIT = Allocation(2, 1)


def drafting(at=SPLIT, depths=DEPTHS, **settings):
    return RouteDepth(TwoPool(Fixed(at)), FixedDepths(depths), **settings)


def outcome(at, accepted):
    """A step whose responses of each pool counted so many verifications by accepted drafts."""
    made = outcome_of(q=at.q, fresh=8, q_next=at.q, m=at.m, tail_s=1.0, bulk_s=1.0)
    records = tuple(
        ResponseRecord(
            group.uid, 0, 0, group.attempt, group.pool, "r0", ResponseStatus.CONSUMED, 1, 100, 0.0, 0.0, 1.0,
            accepted=accepted.get(group.pool, ()),
        )
        for group in made.plan.groups
    )  # fmt: skip
    return replace(made, records=records)


def test_decisions_have_the_depths_of_the_controller_and_the_allocation_of_the_policy():
    policy = drafting()
    state = policy.start(SETUP)
    decision = policy.decide(state, 2)
    assert (decision.m, decision.q_next, decision.depths) == (1, 2, DEPTHS)
    assert policy.initial(state) == SPLIT and policy.name == "two_pool"


def test_a_plan_has_the_depth_of_each_pool_and_the_uniform_one_without_a_tail_pool():
    plan = plan_step(
        step=1, responses=1, tail=[("t", 2)], fresh=["f"], q_next=0, m=1, replicas=["a", "b"], depths=DEPTHS
    )
    assert (plan.depth_of(Pool.TAIL), plan.depth_of(Pool.BULK)) == (4, 2)
    uniform = plan_step(step=1, responses=1, tail=[], fresh=["f"], q_next=0, m=1, replicas=["a", "b"], depths=DEPTHS)
    assert (uniform.depth_of(Pool.TAIL), uniform.depth_of(Pool.BULK)) == (3, 3)


@pytest.mark.parametrize(
    ("pool", "expected"),
    [(Pool.TAIL, DraftDepths(0, 2, 0)), (Pool.BULK, DraftDepths(4, 0, 3))],
)
def test_a_pool_whose_first_drafts_are_hardly_ever_accepted_stops_drafting_for_good(pool, expected):
    policy = drafting()
    state = policy.observe(policy.start(SETUP), outcome(SPLIT, {pool: (950, 30, 20)}))
    assert policy.decide(state, 2).depths == expected
    assert policy.report(state)["stale_pools"] == 1
    state = policy.observe(state, outcome(SPLIT, {pool: (0, 0, 1000)}))
    assert policy.decide(state, 2).depths == expected


def test_without_a_tail_pool_stale_drafts_are_the_tails_and_the_uniform_ones():
    policy = drafting(at=UNIFORM)
    state = policy.observe(policy.start(SETUP), outcome(UNIFORM, {Pool.BULK: (990, 10)}))
    assert policy.decide(state, 0).depths == DraftDepths(0, 2, 0)


@pytest.mark.parametrize("accepted", [(890, 110), (9, 0), ()])
def test_drafts_are_not_stale_that_are_accepted_or_too_few_to_tell(accepted):
    policy = drafting()
    state = policy.observe(policy.start(SETUP), outcome(SPLIT, {Pool.TAIL: accepted, Pool.BULK: ()}))
    assert policy.decide(state, 2).depths == DEPTHS
    assert policy.report(state)["stale_pools"] == 0


def test_a_pool_without_a_drafter_stays_at_depth_0():
    assert drafting(off=frozenset({"bulk"})).decide(drafting().start(SETUP), 2).depths == DraftDepths(4, 0, 3)


MODEL = profile_with_drafts("qwen3.5-2b", "mtp", (1, 2, 3, 4))
BIG = Setup(groups=16, responses=8, replicas=4)


def steps(policy, count=3, **settings):
    workload = math_workload(0, 8, evolving=False)
    return [step.outcome for step in Simulation(BIG, workload, MODEL, policy, **settings).steps(count)]


def test_a_simulated_step_decodes_each_pool_at_its_depth():
    fast, slow = (steps(drafting(depths=DraftDepths(tail, 2)))[1] for tail in (4, 0))
    assert fast.bulk_time_s == slow.bulk_time_s
    assert fast.tail_time_s < 0.75 * slow.tail_time_s


def test_a_schedule_drafts_by_the_batch_size():
    """No drafts in a crowd, deep ones for the last requests: between the two in the crowd, as fast at the end."""
    schedule = (0, *[4] * 8, *[0] * 200)
    plain, scheduled, deep = (
        steps(drafting(at=UNIFORM, depths=DraftDepths(uniform=depth)))[0].gen_time_s for depth in (0, schedule, 4)
    )
    assert scheduled < plain
    assert deep != scheduled
    alone = Setup(groups=1, responses=1, replicas=1)
    workload = math_workload(0, 1, evolving=False)
    lone = [
        next(iter(Simulation(alone, workload, MODEL, drafting(at=UNIFORM, depths=DraftDepths(uniform=d))).steps(1)))
        for d in (schedule, 4)
    ]
    assert lone[0].outcome.gen_time_s == lone[1].outcome.gen_time_s


def test_records_count_drafts_and_verifications():
    outcome = steps(drafting(depths=DEPTHS), records=True)[1]
    for record in outcome.records:
        depth = 4 if record.pool is Pool.TAIL else 2
        assert record.draft_depth == depth and len(record.accepted) == depth + 1
        assert record.drafted_tokens == depth * sum(record.accepted)
        assert sum(record.accepted) + record.accepted_tokens == pytest.approx(record.response_tokens, abs=depth + 2)


def test_a_policy_that_stops_adapting_keeps_its_depths():
    class Rising:
        """One draft more in every step."""

        def start(self, setup):
            return 0

        def decide(self, state):
            return DraftDepths(tail=state, bulk=state)

        def observe(self, state, outcome):
            return min(state + 1, 4)

        def report(self, state):
            return {}

    held = Held(RouteDepth(TwoPool(Fixed(SPLIT)), Rising()), after=3)
    assert [outcome.plan.depths.tail for outcome in steps(held, 6)] == [0, 1, 2, 2, 2, 2]


def test_a_schedule_by_batch_size_drafts_no_deeper_than_the_engines_can():
    """A profile may know more depths than engines of this job were started with."""
    points = [DecodePoint(1, 0.01 / (1 + depth), depth) for depth in range(4)]
    policy = named_policy("uniform_batch_schedule", Setup(4, 2, 2), UNIFORM, DecodeModel(tuple(points)), max_depth=2)
    assert set(policy.controller.depths.uniform[1:]) == {2}
