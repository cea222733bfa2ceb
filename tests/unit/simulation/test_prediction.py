"""What a prediction draws from, how sure it is, and the sentence that it ends with."""

import numpy as np
import pytest

from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.statistics import Mean, mean_of
from tailsieve_rl.simulation.length_table import LengthTable
from tailsieve_rl.simulation.predict import verdict
from tailsieve_rl.simulation.prediction import Prediction, Source, one_run
from tailsieve_rl.simulation.workloads.traces import SKY_T1_SPREAD

from .tables import table


def rows(cells):
    """The source of (prompt, checkpoint, tokens) rows."""
    prompt, checkpoint, tokens = np.array(cells).T
    names = tuple(str(i) for i in range(checkpoint.max() + 1))
    return Source(LengthTable(prompt, checkpoint, tokens, names, "in memory"))


def drawn(source, seed, groups=512, responses=4):
    return source.workload(seed, responses).lengths(np.arange(groups), np.ones(groups, np.int64), 1)


def test_a_repeat_draws_which_prompts_there_are():
    source = Source(table(np.arange(1, 41).reshape(40, 1, 1).repeat(2, axis=2)))
    one, same, other = (set(np.unique(drawn(source, seed))) for seed in (1, 1, 2))
    assert one == same != other
    assert 15 < len(one) < 35, "some 63 % of 40"


def test_a_group_keeps_to_one_prompt_at_one_checkpoint():
    base = 1000 * np.arange(1, 4)[:, None, None] + 100 * np.arange(2)[None, :, None] + np.arange(3)[None, None, :]
    source = Source(table(base))
    checkpoints = set()
    for seed in range(8):
        lengths = drawn(source, seed)
        assert (np.ptp(lengths // 1000, axis=1) == 0).all()
        checkpoints.add(tuple(np.unique(lengths % 1000 // 100)))
    assert checkpoints == {(0,), (1,)}


def test_a_checkpoint_that_few_prompts_reached_is_not_used():
    cells = [(prompt, 0, 10) for prompt in range(4)] + [(0, 1, 99)]
    assert all(drawn(rows([*cells, (0, 0, 10)]), seed).max() == 10 for seed in range(10))
    assert any(drawn(rows([*cells, (1, 1, 99), (1, 1, 99)]), seed).max() == 99 for seed in range(10))


def test_the_responses_of_most_prompts_count():
    assert rows([(0, 0, 5), (0, 0, 5), (1, 0, 5), (1, 0, 5), (2, 0, 5)]).responses == 2
    assert rows([(0, 0, 5), (0, 0, 5), (1, 0, 5)]).responses == 2


def test_a_spread_is_assumed_only_where_no_prompt_has_a_second_response():
    assert rows([(0, 0, 5), (1, 0, 5)]).spread == SKY_T1_SPREAD
    assert rows([(0, 0, 5), (1, 0, 5), (1, 0, 7)]).spread == 0


def test_the_interval_is_that_of_one_run_however_many_repeats_there_are():
    rng = np.random.default_rng(0)
    widths = []
    for repeats in (20, 2000):
        interval = one_run(mean_of(1 + 0.05 * rng.standard_normal(repeats)), repeats)
        widths.append(interval.high - interval.low)
    assert widths == pytest.approx([0.2, 0.2], rel=0.3)


def found(uniform, least_loaded):
    return Prediction(1, 1, 1, Mean(*uniform), Mean(*least_loaded), 0, 0, 0)


SPREAD_OUT, ALIKE = table(np.array([10] * 8 + [90] * 4).reshape(12, 1, 1)), table(np.full((12, 1, 1), 10))


@pytest.mark.parametrize(
    ("uniform", "least_loaded", "pays"),
    [
        ((1.2, 1.1, 1.3), (1.05, 1.02, 1.08), True),
        ((1.2, 1.1, 1.3), (1.05, 1.01, 1.09), False),
        ((1.05, 1.0, 1.1), (1.2, 1.1, 1.3), False),
    ],
)
def test_it_pays_when_it_surely_beats_both(uniform, least_loaded, pays):
    outcome = found(uniform, least_loaded)
    assert outcome.pays is pays
    assert verdict(Source(SPREAD_OUT), Setup(8, 8, 4), outcome).startswith("It would pay" if pays else "It would not")


@pytest.mark.parametrize(
    ("lengths", "setup", "uniform", "least_loaded", "says"),
    [
        (SPREAD_OUT, Setup(8, 8, 1), (1, 1, 1), (1, 1, 1), "a single replica"),
        (SPREAD_OUT, Setup(1, 8, 4), (1, 1, 1), (1, 1, 1), "a single group"),
        (SPREAD_OUT, Setup(8, 8, 4), (1.2, 1.1, 1.3), (1.1, 0.99, 1.2), "too uncertain, its lower end 0.990x"),
        (ALIKE, Setup(8, 8, 4), (1, 1, 1), (1, 1, 1), "too alike, P99 is 1.0 x P50"),
        (SPREAD_OUT, Setup(8, 8, 4), (1.2, 1.1, 1.3), (1, 1, 1), "verl's own rule"),
        (SPREAD_OUT, Setup(8, 8, 4), (1, 1, 1), (1, 1, 1), "no split of the replicas"),
    ],
)
def test_the_verdict_says_why_not(lengths, setup, uniform, least_loaded, says):
    assert says in verdict(Source(lengths), setup, found(uniform, least_loaded))
