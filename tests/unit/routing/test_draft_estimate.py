"""tau(b, d) at every depth, recovered from steps whose pools ran at two or three of them, pass by pass."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from tailsieve_rl.routing.decode_estimate import Decoding
from tailsieve_rl.routing.draft import geometric
from tailsieve_rl.routing.draft_estimate import estimate_depths, latest_acceptance

DEPTHS = np.arange(7)
ACCEPTED = geometric(0.7, 6)


def plain(b):
    return 0.006 * (1 + np.sqrt(b / 20))


def passes_of(share, once, each):
    """p(b, d) of the form that is fitted."""
    return lambda b, d: (1 - share) * plain(b) + share * plain(b * (d + 1)) + (once if d else 0.0) + each * d


KINDS = {
    "a pass for each draft": passes_of(0.2, 0.0, 0.0007),
    "a pass for all drafts": passes_of(0.2, 0.0015, 0.0),
    "experts for each token": passes_of(0.9, 0.0, 0.0004),
    # Multiplying, not reading, takes the time from 100 rows on: not of that form.
    "bound by compute": lambda b, d: np.maximum(0.007, 7e-5 * b * (d + 1)) + 0.0004 * d,
}


def replica(name, pass_s, depth, lengths, rng, jitter=0.0):
    """Requests of a replica that decode together from time 0, with their verifications counted."""
    left, counts = lengths.copy(), np.zeros((len(lengths), depth + 1), int)
    now, ends = 0.0, np.zeros(len(lengths))
    chances = np.diff([1.0, *ACCEPTED.at_least[:depth], 0.0]) * -1
    while (running := left > 0).any():
        now += pass_s(int(running.sum()), depth) * np.exp(rng.normal(-(jitter**2) / 2, jitter))
        accepted = rng.choice(depth + 1, len(left), p=chances)
        counts[running, accepted[running]] += 1
        left = np.where(running, left - 1 - accepted, left)
        ends = np.where(running, now, ends)
    got = [int(c @ np.arange(1, depth + 2)) for c in counts]
    return [
        Decoding(name, 0.0, float(end), tokens, depth, tuple(count.tolist()) if depth else ())
        for end, tokens, count in zip(ends, got, counts, strict=True)
    ]


def steps_of(pass_s, depths, jitter=0.0, steps=3):
    """Steps with a small tail pool and a crowded bulk pool; depths: (tail, bulk) of each step, the last one stays."""
    rng, found = np.random.default_rng(0), []
    for step in range(steps):
        tail, bulk = depths[min(step, len(depths) - 1)]
        pools = [("t0", tail, 12), ("t1", tail, 12), ("b0", bulk, 80), ("b1", bulk, 80)]
        lengths = {name: np.exp(rng.normal(5.5, 0.8, size)).astype(int) + 1 for name, _, size in pools}
        found.append([*chain(*(replica(n, pass_s, d, lengths[n], rng, jitter) for n, d, _ in pools))])
    return found


def errors(pass_s, fit, b, depths=DEPTHS):
    """(depths, b) relative errors of the estimated tau."""
    true = np.array([pass_s(b, d) / ACCEPTED.tokens(d) for d in depths])
    return np.array([fit.model.tau(b, d) for d in depths]) / true - 1


SMALL, ALL = np.array([1, 2, 4, 8, 12]), np.array([1, 2, 4, 8, 12, 24, 48, 80])


RUN = [(6, 0), (3, 3), (6, 2)]
"""Depths of both pools in three steps: what the governed controller might try."""


@pytest.mark.parametrize("kind", KINDS)
def test_depths_that_ran_are_known_within_one_per_cent(kind):
    fit = estimate_depths(steps_of(KINDS[kind], RUN), range(7))
    assert np.abs(errors(KINDS[kind], fit, SMALL, [6])).max() < 0.01
    assert np.abs(errors(KINDS[kind], fit, ALL, [0, 2, 3])).max() < 0.02
    assert np.abs(errors(KINDS[kind], fit, ALL, [0, 2, 3])).mean() < 0.005
    assert fit.acceptance.at_least == pytest.approx(ACCEPTED.at_least, abs=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_other_depths_are_known_within_a_few_per_cent_at_batch_sizes_at_which_deeper_ones_ran(kind):
    fit = estimate_depths(steps_of(KINDS[kind], RUN), range(7))
    assert np.abs(errors(KINDS[kind], fit, SMALL, [1, 4, 5])).max() < (0.065 if kind == "bound by compute" else 0.025)
    if kind != "bound by compute":
        assert np.abs(errors(KINDS[kind], fit, ALL, [1])).max() < 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_a_depth_that_ran_in_a_crowd_only_is_not_taken_to_be_as_slow_for_few_requests(kind):
    crowd = sorted(
        replica("b0", KINDS[kind], 3, np.full(80, 300), np.random.default_rng(0)), key=lambda request: request.end_s
    )
    aborted = [replace(request, end_s=crowd[0].end_s, tokens=None) for request in crowd[1:]]
    fit = estimate_depths([*steps_of(KINDS[kind], [(6, 0)], steps=2), [crowd[0], *aborted]], range(7))
    assert np.abs(errors(KINDS[kind], fit, SMALL, [3])).max() < (0.5 if kind == "bound by compute" else 0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_deeper_drafts_than_ran_in_a_crowd_are_a_guess(kind):
    """Above by up to a quarter, or below by up to a half where compute binds: running them once corrects it."""
    fit = estimate_depths(steps_of(KINDS[kind], RUN), range(7))
    error = errors(KINDS[kind], fit, np.array([24, 48, 80]), [4, 5, 6])
    assert error.min() > -0.6 and error.max() < 0.25


def test_after_two_depths_those_between_look_at_least_as_good_as_they_are():
    """So that one of them is run, which settles whether drafting is paid for once or for each draft."""
    for kind in ("a pass for each draft", "a pass for all drafts"):
        fit = estimate_depths(steps_of(KINDS[kind], [(6, 0)]), range(7))
        assert (errors(KINDS[kind], fit, SMALL, [1, 2, 3, 4, 5]) < 0.03).all()


def test_under_noise_of_fifteen_per_cent_a_pass_the_mean_error_is_three_per_cent():
    kind = KINDS["a pass for each draft"]
    fit = estimate_depths(steps_of(kind, RUN, jitter=0.15), range(7))
    assert np.abs(errors(kind, fit, ALL)).mean() < 0.03
    assert 0 < fit.residual < 0.1


def test_requests_whose_verifications_were_not_counted_are_fitted_by_what_others_accept():
    kind = KINDS["a pass for each draft"]
    steps = [
        [replace(d, accepted=()) if i % 2 else d for i, d in enumerate(step)]
        for step in steps_of(kind, [(6, 0), (3, 3)])
    ]
    assert np.abs(errors(kind, estimate_depths(steps, range(7)), SMALL, [3, 6])).mean() < 0.05


def test_without_drafts_only_depth_0_is_known():
    fit = estimate_depths(steps_of(KINDS["a pass for each draft"], [(0, 0)]), range(7))
    assert fit.model.depths == (0,) and fit.acceptance is None
    assert np.abs(errors(KINDS["a pass for each draft"], fit, ALL, [0])).mean() < 0.01


def test_acceptance_is_that_of_the_last_step_that_had_drafts():
    old, new = Decoding("a", 0, 1, 9, 2, (0, 0, 3)), Decoding("a", 0, 1, 3, 2, (3, 0, 0))
    assert latest_acceptance([[old], [new], [Decoding("a", 0, 1, 5)]]).at_least == (0.0, 0.0)
    assert latest_acceptance([[Decoding("a", 0, 1, 5)]]) is None


def test_steps_in_which_nothing_took_time_are_refused_in_words():
    with pytest.raises(ValueError, match="tau cannot be estimated: no request with known tokens took any time"):
        estimate_depths([[Decoding("a", 1.0, 1.0, 5, 3, (1, 1, 0, 0))]], range(4))
