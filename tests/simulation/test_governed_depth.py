"""Governed draft depths in closed loop, in virtual time, against every fixed pair of depths."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.governed_depth import GovernedDepths
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments import Options, experiment, governed_depth
from tailsieve_rl.simulation.experiments.fixed_depths import Depths
from tailsieve_rl.simulation.experiments.governed_depth import depths_of, governed
from tailsieve_rl.simulation.profiles import PROFILES, replicas
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import math_workload

D = governed_depth.MOST_DRAFTS


@pytest.fixture(autouse=True)
def few_judges(monkeypatch):
    """One prompt stream of eight steps judges the depths, by which two that are as good differ by up to a hundredth."""
    monkeypatch.setattr(governed_depth, "JUDGES", 1)
    monkeypatch.setattr(governed_depth, "JUDGED", 8)
    monkeypatch.setattr(governed_depth, "STEPS", 4)


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
    found = governed_depth.settling(at, setup, model, workload)
    assert found["loss"][3] < 0.03
    assert found["over_none"][3] < 0.01


def test_drafts_that_are_made_in_every_step_are_mostly_verified():
    """As on vLLM's V2 runner, where shallower verification saves no drafting."""
    plain, all_drafted = (profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), 0.7, runs) for runs in (None, D))
    at, setup = Allocation(4, 2), Setup(64, 8, 8)
    found, other = (governed_depth.settling(at, setup, model, "math") for model in (all_drafted, plain))
    assert found["loss"][3] < 0.03
    assert found["depths"][3][0] > other["depths"][3][0]


def test_a_known_decode_model_needs_no_trial():
    setup, at = Setup(64, 8, 8), Allocation(4, 2)
    model = profile_with_drafts("qwen3.5-4b", "mtp", range(1, D + 1), 0.8)
    stream = math_workload(0, 8, evolving=False)
    outcome = list(Simulation(setup, stream, model, governed(at, model=model), records=True).steps(3))[1].outcome
    seconds = governed_depth.judged(at, setup, model, "math")
    assert seconds[depths_of(outcome.plan)] < 1.01 * min(seconds.values())


def test_falling_acceptance_is_followed_down_to_no_drafts():
    """From 0.8 to 0.1 in twenty steps."""
    fall = governed_depth.falling(Allocation(4, 2), "qwen3.5-4b")
    assert min(fall["depths"][3]) >= 2
    assert all(later[1] <= earlier[1] for earlier, later in pairwise(fall["depths"][2:]))
    assert fall["depths"][-1] == [0, 0]
    assert np.mean(fall["loss"][3:]) < 0.02


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
        chosen.append(depths_of(step.outcome.plan))
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
    assert [depths_of(step.outcome.plan) for step in run.steps(3)][:2] == [Depths(D, 0), Depths(0, 0)]


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


def test_the_experiment_has_every_cell_and_draws_its_figure(monkeypatch, tmp_path):
    monkeypatch.setattr(governed_depth, "DRAFTERS", (("dflash", None),))
    monkeypatch.setattr(governed_depth, "FALL", (0.8, 0.1))
    results = governed_depth.run(Options(), models=("qwen3.5-35b-a3b-tp2",), acceptances=(0.8,))
    assert len(results["cells"]) == 2 * 3 and len(results["falls"]) == 2
    (path,) = experiment("governed-depth").draw(results, tmp_path)
    assert path.stat().st_size > 20_000
