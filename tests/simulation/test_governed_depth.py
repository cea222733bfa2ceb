"""Governed draft depths in closed loop, in virtual time, against every fixed pair of depths."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.governed_depth import GovernedDepths
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.plan import Pool
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments.fixed_depths import Depths, depth_times
from tailsieve_rl.simulation.profiles import PROFILES, replicas
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import code_workload, math_workload

D = 6
PAIRS = [Depths(tail, bulk) for tail in range(D + 1) for bulk in range(D + 1)]
WORKLOADS = {"math": math_workload, "code": code_workload}


def governed(at, **settings):
    return RouteDepth(TwoPool(Fixed(at)), GovernedDepths(D, **settings), min_acceptance=0.0)


def depths_of(outcome):
    plan = outcome.plan
    return Depths(plan.depth_of(Pool.TAIL), plan.depth_of(Pool.BULK))


def lost(at, setup, workload, model, chosen):
    """How much slower a pair of depths is than the best pair, and than none, on steps of another prompt stream."""
    found = depth_times([at], PAIRS, setup, workload, model, 8)
    times = {pair: seconds.mean() for (_, pair), seconds in found.items()}
    return times[chosen] / min(times.values()) - 1, times[chosen] / times[Depths(0, 0)] - 1


# Every configuration with both methods and every acceptance; workloads and allocations alternate.
CELLS = [
    (name, method, acceptance, ("math", "code")[(i + j) % 2], ("uniform", "pools")[(j + k) % 2])
    for i, name in enumerate(PROFILES)
    for j, acceptance in enumerate((0.2, 0.5, 0.8, 0.95))
    for k, method in enumerate(("mtp", "dflash"))
]


@pytest.mark.parametrize(("name", "method", "acceptance", "workload", "routing"), CELLS)
def test_after_three_steps_the_depths_are_within_three_per_cent_of_the_best_pair(
    name, method, acceptance, workload, routing
):
    setup = Setup(64, 8, replicas(name))
    at = UNIFORM if routing == "uniform" else Allocation(4, setup.replicas // 4)
    model = profile_with_drafts(name, method, range(1, D + 1), acceptance)
    stream, other = (WORKLOADS[workload](seed, 8, evolving=False) for seed in (0, 1))
    run = Simulation(setup, stream, model, governed(at), records=True)
    chosen = [depths_of(step.outcome) for step in run.steps(5)][3:4]
    over_best, over_none = lost(at, setup, other, model, chosen[0])
    assert over_best < 0.03
    assert over_none <= 0.001


def test_drafts_that_are_made_in_every_step_are_all_verified_or_none():
    """As on vLLM's V2 runner, where shallower verification saves no drafting."""
    setup, at = Setup(64, 8, 8), Allocation(4, 2)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), 0.8, runs=D)
    stream = math_workload(0, 8, evolving=False)
    outcome = list(Simulation(setup, stream, model, governed(at), records=True).steps(5))[3].outcome
    assert lost(at, setup, math_workload(1, 8, evolving=False), model, depths_of(outcome))[0] < 0.03


def test_a_known_decode_model_needs_no_trial():
    setup, at = Setup(64, 8, 8), Allocation(4, 2)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), 0.8)
    stream = math_workload(0, 8, evolving=False)
    outcome = list(Simulation(setup, stream, model, governed(at, model=model), records=True).steps(3))[1].outcome
    assert lost(at, setup, math_workload(1, 8, evolving=False), model, depths_of(outcome))[0] < 0.01


@dataclass(frozen=True)
class Resumed:
    """A policy that goes on from a state."""

    policy: RouteDepth
    state: Any

    def start(self, setup):
        return self.state

    def __getattr__(self, name):
        return getattr(self.policy, name)


@pytest.mark.parametrize("at", [UNIFORM, Allocation(4, 2)], ids=str)
def test_falling_acceptance_is_followed_down_to_no_drafts(at):
    """From 0.8 to 0.1 in twenty steps."""
    setup, policy, chosen = Setup(64, 8, 8), governed(at), []
    state = policy.start(setup)
    models = [profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), float(a)) for a in np.linspace(0.8, 0.1, 21)]
    for seed, model in enumerate(models):
        stream = math_workload(seed, 8, evolving=False)
        run = Simulation(setup, stream, model, Resumed(policy, state), records=True)
        outcome = next(run.steps(2)).outcome
        state = policy.observe(state, outcome)
        chosen.append(depths_of(outcome))
    assert min(chosen[3]) >= 2
    assert all(later.bulk <= earlier.bulk for earlier, later in pairwise(chosen[2:]))
    assert chosen[-1] == Depths(0, 0)
    stream = math_workload(0, 8, evolving=False)
    over_best = [lost(at, setup, stream, models[step], chosen[step])[0] for step in (4, 8, 12, 16, 20)]
    assert np.mean(over_best) < 0.02


def test_pools_with_drafters_of_their_own_are_told_apart():
    """Blocks of drafts for the tail, slow heads that are seldom right for the bulk pool: each costs what it costs."""
    setup, at = Setup(64, 8, 8), Allocation(4, 2)
    tail, bulk = (
        profile_with_drafts("qwen3.5-2b", method, range(1, D + 1), a) for method, a in (("dflash", 0.9), ("mtp", 0.2))
    )
    policy = GovernedDepths(D, apart=True)
    run = Simulation(
        setup, math_workload(0, 8, evolving=False), bulk, RouteDepth(TwoPool(Fixed(at)), policy, 0.0), tail, True
    )
    state, chosen = policy.start(setup), []
    for step in run.steps(6):
        state = policy.observe(state, step.outcome)
        chosen.append(depths_of(step.outcome))
    assert chosen[0] == Depths(D, 0) and chosen[1].bulk == D, "no draft of the bulk pool was seen before"
    assert chosen[-1].tail >= 5 and chosen[-1].bulk <= 1
    models = policy._models(state)
    for pool, true in (("tail", tail), ("bulk", bulk)):
        assert models[pool].tau([1, 2, 4], D) == pytest.approx(true.tau([1, 2, 4], D), rel=0.05)


def test_no_drafts_at_all_need_not_promise_a_gain():
    setup, at = Setup(64, 8, 8), Allocation(4, 2)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), 0.05)
    reluctant = governed(at, model=model, gain=0.9)
    run = Simulation(setup, math_workload(0, 8, evolving=False), model, reluctant, records=True)
    assert [depths_of(step.outcome) for step in run.steps(3)][:2] == [Depths(D, 0), Depths(0, 0)]


def test_without_pools_the_first_step_shows_decoding_and_the_second_shows_drafts():
    policy = GovernedDepths(4)
    setup = Setup(64, 8, 8)
    assert policy.start(setup).depths == DraftDepths(tail=4, bulk=0, uniform=0)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, 5), 0.8)
    drafting = RouteDepth(TwoPool(Fixed(UNIFORM)), policy)
    run = Simulation(setup, math_workload(0, 8, evolving=False), model, drafting, records=True)
    assert [step.outcome.plan.depths.uniform for step in run.steps(2)] == [0, 4]


def test_depths_are_not_judged_before_a_request_has_tokens():
    policy, setup = GovernedDepths(4), Setup(8, 8, 2)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, 5), 0.8)
    run = Simulation(setup, math_workload(0, 8, evolving=False), model, TwoPool(Fixed(Allocation(1, 1))), records=True)
    outcome = next(iter(run.steps(2))).outcome
    silent = replace(outcome, records=tuple(replace(r, first_token_s=None) for r in outcome.records))
    assert policy.observe(policy.start(setup), silent).depths == DraftDepths(tail=4)
