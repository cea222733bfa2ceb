"""tau from what a run does anyway: recovered from simulated steps whose tokens are timed one by one."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from tailsieve_rl.routing.decode_estimate import Decoding, decodings, estimate
from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus
from tailsieve_rl.routing.plan import Pool

SHAPES = {
    "rises straight": lambda b: 0.008 * (1 + b / 60),
    "rises and levels off": lambda b: 0.006 * (1 + np.sqrt(b / 20)),
    "flat, then bound by compute": lambda b: 0.008 * (1 + (b / 24) ** 4) ** 0.25,
}
BATCH_SIZES = np.arange(1, 49)


def steps_of(tau_of, seed, *, jitter=0.0, stagger_s=0.0, accepted=None, replica_sd=0.0, abort_at=1.0):
    """Eight steps of four replicas with 48 requests each, token by token.

    Args:
        jitter: standard deviation of the logarithm of each iteration's time.
        stagger_s: requests start within so many seconds.
        accepted: (most, chance) drafted tokens of an iteration and how many of them are accepted.
        replica_sd: a replica is faster or slower than it should be for a whole step.
        abort_at: share of a replica's requests after whose completion the others are aborted.
    """
    rng, size = np.random.default_rng(seed), (32, len(BATCH_SIZES))
    lengths = np.minimum(np.exp(rng.normal(5.0, 0.9, size)) + 1, 1500).astype(int)
    left, start, ends = lengths.copy(), rng.uniform(0, stagger_s, size), np.zeros(size)
    pace, now = np.exp(rng.normal(0, replica_sd, 32)), start.min(axis=1)
    while (decoding := (left > 0).sum(axis=1) > (1 - abort_at) * size[1]).any():
        waiting = np.where(left > 0, start, np.inf).min(axis=1)
        now = np.where(decoding, np.maximum(now, waiting), now)
        running = (left > 0) & (start <= now[:, None]) & decoding[:, None]
        iteration_s = pace * tau_of(running.sum(axis=1)) * np.exp(rng.normal(-(jitter**2) / 2, jitter, 32))
        now = np.where(decoding, now + iteration_s, now)
        gain = 1 if accepted is None else 1 + rng.binomial(*accepted, size)
        left = np.where(running, np.maximum(left - gain, 0), left)
        ends = np.where(running, now[:, None], ends)
    ends = np.maximum(ends, start)
    rows = [
        [
            Decoding(f"r{replica % 4}", *map(float, times), int(tokens))
            for *times, tokens in zip(start[replica], ends[replica], (lengths - left)[replica], strict=True)
        ]
        for replica in range(32)
    ]
    return [[*chain(*rows[i : i + 4])] for i in range(0, 32, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "noise",
    [
        pytest.param({"jitter": 0.15}, id="jitter"),
        pytest.param({"jitter": 0.15, "stagger_s": 0.4}, id="staggered starts"),
        pytest.param({"jitter": 0.1, "replica_sd": 0.04}, id="uneven replicas"),
        pytest.param({"jitter": 0.1, "abort_at": 0.9}, id="aborted at the cutoff"),
    ],
)
def test_tau_is_recovered_within_five_per_cent_from_eight_noisy_steps(shape, noise):
    tau_of = SHAPES[shape]
    fit = estimate(steps_of(tau_of, seed=11, **noise))
    seen = BATCH_SIZES[4:] if "abort_at" in noise else BATCH_SIZES
    assert fit.model.tau(seen) == pytest.approx(tau_of(seen), rel=0.05)
    assert np.mean(np.abs(fit.model.tau(seen) / tau_of(seen) - 1)) < 0.02
    assert 0 < fit.residual < 0.08


def test_tau_under_speculation_is_seconds_per_accepted_token_at_that_depth():
    tau_of = SHAPES["rises straight"]
    fit = estimate(steps_of(tau_of, seed=5, jitter=0.05, accepted=(3, 0.6)), draft_depth=3)
    assert fit.model.depths == (3,)
    assert fit.model.tau(BATCH_SIZES, draft_depth=3) == pytest.approx(tau_of(BATCH_SIZES) / 2.8, rel=0.1)
    error = fit.model.tau(BATCH_SIZES, draft_depth=3) * 2.8 / tau_of(BATCH_SIZES) - 1
    assert np.mean(np.abs(error)) < 0.03


def test_without_noise_the_fit_is_exact_and_leaves_no_residual():
    steps = steps_of(SHAPES["rises straight"], seed=3)
    fit = estimate(steps)
    assert fit.model.tau(BATCH_SIZES) == pytest.approx(SHAPES["rises straight"](BATCH_SIZES), rel=0.005)
    assert fit.residual < 0.001
    assert fit.tokens == sum(d.tokens for step in steps for d in step)


def test_the_residual_grows_with_the_noise():
    residuals = [estimate(steps_of(SHAPES["rises straight"], 3, jitter=x)).residual for x in (0.0, 0.1, 0.4)]
    assert residuals == sorted(residuals) and residuals[2] > 2 * residuals[1]


def test_the_fit_never_falls_however_noisy_the_steps():
    fit = estimate(steps_of(lambda b: 0.01, 1, jitter=1.0, accepted=(4, 0.5)))
    taus = fit.model.tau(BATCH_SIZES)
    assert (np.diff(taus) >= 0).all() and (taus > 0).all()


def test_requests_whose_tokens_are_not_known_still_count_as_running():
    tau_of = SHAPES["rises and levels off"]
    steps = [[d if i % 3 else replace(d, tokens=None) for i, d in enumerate(step)] for step in steps_of(tau_of, seed=2)]
    assert estimate(steps).model.tau(BATCH_SIZES) == pytest.approx(tau_of(BATCH_SIZES), rel=0.02)


def test_the_order_of_a_steps_requests_does_not_matter():
    steps = steps_of(SHAPES["rises straight"], seed=4, jitter=0.1)
    mixed = [sorted(step, key=lambda d: d.end_s) for step in steps]
    assert estimate(mixed).model.table(60) == pytest.approx(estimate(steps).model.table(60))


def test_batch_sizes_that_never_ran_are_bridged_and_one_request_stands_for_the_smallest():
    pair = [Decoding("a", 0.0, 10.0, 1000), Decoding("a", 0.0, 10.0, 1000)]
    crowd = [Decoding("b", 0.0, 10.0, 500)] * 30
    assert estimate([pair + crowd]).model.tau([1, 2, 16, 30]) == pytest.approx([0.01, 0.01, 0.015, 0.02], rel=1e-6)


@pytest.mark.parametrize(
    "steps",
    [[], [[]], [[Decoding("a", 1.0, 1.0, 5)]], [[Decoding("a", 0.0, 1.0, None)]], [[Decoding("a", 0.0, 1.0, 0)]]],
)
def test_steps_that_say_nothing_about_tau_are_refused_in_words(steps):
    with pytest.raises(ValueError, match="tau cannot be estimated: no request with known tokens took any time"):
        estimate(steps)


def test_a_record_decodes_from_its_first_token_and_only_runs_where_that_is_not_known():
    record = ResponseRecord("u", 0, 0, 1, Pool.BULK, "a", ResponseStatus.ABORTED, 9, 41, 1.0, 1.5, 4.0)
    waiting = replace(record, first_token_s=None, response_tokens=0)
    assert decodings([record, waiting]) == (Decoding("a", 1.5, 4.0, 40), Decoding("a", 1.0, 4.0, None))
    assert decodings([replace(record, response_tokens=0)])[0].tokens == 0
