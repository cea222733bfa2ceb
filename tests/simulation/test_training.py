"""Fig. 7 and D.1: TailSieve under drifting lengths, MTP in the model, and controllers that know the depth."""

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control.evidence import no_evidence
from tailsieve_rl.routing.control.forecast import Forecast, PoolTaus, draw
from tailsieve_rl.routing.control.tuning import Tuning
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments import Options, experiment, training
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.workloads import math_workload

MODEL = "qwen3.5-2b"


@pytest.fixture(scope="module")
def results():
    return training.run(Options(repeats=2), models=(MODEL,))


def cell(results, schedule):
    return next(cell for cell in results["cells"] if cell["schedule"] == schedule)


def test_tailsieve_is_faster_than_uniform_with_and_without_mtp(results):
    found = cell(results, "math")["policies"]
    assert found["tailsieve"]["speedup"] > 1.02
    assert found["tailsieve_mtp"]["speedup"] > found["uniform_mtp"]["speedup"] > 1.5


def test_speedups_can_be_recomputed_from_the_step_times(results):
    found = cell(results, "math")["policies"]
    for policy in found.values():
        times, base = np.array(policy["step_s_by_stream"]), np.array(found["uniform"]["step_s_by_stream"])
        assert times.shape == (2, training.STEPS["math"])
        assert policy["speedup"] == pytest.approx((base.mean(axis=1) / times.mean(axis=1)).mean())


def test_what_is_consumed_is_as_long_as_under_uniform_routing(results):
    found = cell(results, "math")["policies"]
    uniform, routed = (np.mean(found[key]["response_length_mean"]) for key in ("uniform", "tailsieve"))
    assert routed == pytest.approx(uniform, rel=0.04)


def test_the_controller_leaves_routing_when_the_tail_has_gone(results):
    found = cell(results, "fading")
    assert found["mtp_transition"]["streams_that_left"] == 2
    for policy in ("tailsieve", "tailsieve_mtp"):
        assert np.array(found["policies"][policy]["q"])[:, 0].min() > 0
        assert np.array(found["policies"][policy]["q"])[:, -1].max() == 0
    assert cell(results, "math")["mtp_transition"]["streams_that_left"] == 0


def test_after_the_transition_steps_are_uniform_steps(results):
    after = cell(results, "fading")["mtp_transition"]["after"]
    # Requests are dealt out singly, and uniform routing deals out groups with one more draft token.
    assert after["speedup"] == pytest.approx(1.0, abs=0.08)


def test_the_figures_are_drawn(results, tmp_path):
    for path in experiment("training").draw(results, tmp_path):
        assert path.stat().st_size > 20_000


def test_a_forecast_uses_the_depth_of_each_pool():
    model, setup = profile_with_drafts(MODEL, "mtp", (2, 4)), Setup(16, 4, 4)
    lengths = math_workload(0, 4).lengths(np.arange(64), np.ones(64, int), 0)
    evidence = no_evidence(4, model)
    evidence = type(evidence)(lengths, model, online=False)
    at = Allocation(4, 1)
    plain, drafted, swapped = (
        Tuning().forecast(evidence, setup, 1, DraftDepths(tail, bulk)) for tail, bulk in ((0, 0), (4, 2), (0, 2))
    )
    assert drafted.bulk_s(at).mean() < 0.8 * plain.bulk_s(at).mean()
    assert drafted.tail_s(at).mean() < 0.8 * plain.tail_s(at).mean()
    assert swapped.bulk_s(at) == pytest.approx(drafted.bulk_s(at))
    draws = draw(lengths, 16, Tuning().samples, np.random.default_rng((0, 1)))
    plain_tau, drafted_tau = model.table(64, 0), model.table(64, 2)
    assert swapped.step_s(at) == Forecast(draws, 4, PoolTaus(plain_tau, drafted_tau, plain_tau)).step_s(at)
