"""Appendix B's measurements recover what was put into constructed data, and the command prints and writes them."""

import json

import numpy as np
import pytest

from tailsieve_rl import cli
from tailsieve_rl.simulation.analysis import analyze_lengths, tail_auc, variance_of
from tailsieve_rl.simulation.length_table import LengthTable, read_lengths

from .tables import table, write_csv


def constructed(prompts, checkpoints, samples, parts, seed=0):
    """Lengths of normal effects: standard deviations of prompt, checkpoint, interaction and sampling."""
    rng = np.random.default_rng(seed)
    shapes = (prompts, 1, 1), (1, checkpoints, 1), (prompts, checkpoints, 1), (prompts, checkpoints, samples)
    return np.rint(10_000 + sum(sd * rng.standard_normal(shape) for sd, shape in zip(parts, shapes, strict=True)))


def test_two_factors_recover_the_variance_components_that_data_were_made_of():
    lengths = constructed(300, 60, 8, (1000, 400, 300, 600))
    found = variance_of(table(lengths.astype(np.int64)))
    total = 1000**2 + 400**2 + 300**2 + 600**2
    expected = {"prompt": 1000**2, "checkpoint": 400**2, "interaction": 300**2, "sampling": 600**2}
    for name, part in expected.items():
        assert found.components[name] == pytest.approx(part / total, abs=0.03), name
    assert found.components["sampling"] > found.sums_of_squares["sampling"], "a share of squares gives some of it away"
    assert (found.prompts, found.checkpoints, found.samples, found.rows) == (300, 60, 8, 144_000)


def test_sums_of_squares_are_those_of_appendix_b_by_hand():
    # Two prompts, two checkpoints, two responses: the textbook's sums, 1152, 32, 8 and 8 (in all 1200).
    lengths = np.array([[[99, 101], [101, 103]], [[121, 123], [127, 129]]])
    grand, by_prompt, by_checkpoint = 113.0, [101.0, 125.0], [111.0, 115.0]
    by_cell = [[100.0, 102.0], [122.0, 128.0]]
    prompt = 4 * sum((m - grand) ** 2 for m in by_prompt)
    checkpoint = 4 * sum((m - grand) ** 2 for m in by_checkpoint)
    interaction = 2 * sum(
        (by_cell[i][s] - by_prompt[i] - by_checkpoint[s] + grand) ** 2 for i in range(2) for s in range(2)
    )
    assert (prompt, checkpoint, interaction) == (1152, 32, 8)
    found = variance_of(table(lengths)).sums_of_squares
    assert found == pytest.approx(
        {"prompt": 1152 / 1200, "checkpoint": 32 / 1200, "interaction": 8 / 1200, "sampling": 8 / 1200}
    )


def test_one_factor_recovers_the_share_of_prompts_from_groups_of_different_sizes():
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 12, 3000)
    prompt = np.repeat(np.arange(3000), sizes)
    tokens = np.rint(9000 + 800 * rng.standard_normal(3000)[prompt] + 600 * rng.standard_normal(len(prompt)))
    found = variance_of(LengthTable(prompt, np.zeros_like(prompt), tokens.astype(np.int64), ("",), "made"))
    assert found.components["prompt"] == pytest.approx(0.64, abs=0.02)
    assert set(found.components) == {"prompt", "sampling"}


def test_unbalanced_data_are_cut_to_the_prompts_and_responses_that_every_checkpoint_has():
    lengths = constructed(20, 3, 4, (1000, 100, 100, 300)).astype(np.int64)
    whole = table(lengths)
    # One prompt lacks a checkpoint, another has a response less at one.
    gone = ((whole.prompt == 19) & (whole.checkpoint == 0)) | (
        (np.arange(len(whole.prompt)) % 4 == 3) & (whole.prompt == 0)
    )
    cut = LengthTable(whole.prompt[~gone], whole.checkpoint[~gone], whole.tokens[~gone], whole.checkpoints, "made")
    found, expected = variance_of(cut), variance_of(table(lengths[:19, :, :3]))
    assert (found.prompts, found.checkpoints, found.samples, found.rows) == (19, 3, 3, 171)
    assert found.sums_of_squares == pytest.approx(expected.sums_of_squares)
    assert "19 prompts x 3 checkpoints x 3 responses" in found.design


def test_prompts_seen_at_different_checkpoints_make_one_factor_and_it_says_so():
    prompt = np.repeat(np.arange(40), 4)
    tokens = 1000 + 10 * prompt + np.tile([0, 1, 2, 3], 40)
    found = variance_of(LengthTable(prompt, prompt // 20, tokens, ("1", "2"), "made"))
    assert found.sums_of_squares["prompt"] > 0.99
    assert "what checkpoints do is in the prompt's share" in found.design


def test_with_one_response_each_sampling_is_said_to_be_in_the_interaction():
    found = variance_of(table(constructed(400, 20, 1, (1000, 0, 0, 500)).astype(np.int64)))
    assert found.components["interaction"] == pytest.approx(0.2, abs=0.02) and found.components["sampling"] == 0
    assert "sampling cannot be told from interaction" in found.design


def test_without_second_responses_there_is_no_variance_to_divide():
    assert variance_of(table(np.arange(1, 21).reshape(20, 1, 1))) is None


def test_the_auc_is_one_for_the_same_ranking_zero_for_the_reverse_and_counts_ties_half():
    lengths = np.arange(1.0, 65.0)
    assert tail_auc(lengths, lengths) == 1.0
    assert tail_auc(lengths, -lengths) == 0.0
    assert tail_auc(lengths, np.ones(64)) == 0.5
    assert np.isnan(tail_auc([3.0], [3.0]))


def test_the_auc_takes_seven_of_64_prompts_for_the_tail():
    source = np.arange(64.0)
    target = source.copy()
    target[57] = -1  # the seventh longest is last at the target: 57 of the 7 * 57 comparisons are lost
    assert tail_auc(source, target) == pytest.approx(6 / 7)
    target = source.copy()
    target[56] = 100  # the eighth is not in the tail, but beats it at the target
    assert tail_auc(source, target) == pytest.approx(56 / 57)


def test_the_auc_of_independent_rankings_is_a_half():
    rng = np.random.default_rng(0)
    assert np.mean([tail_auc(*rng.random((2, 64))) for _ in range(400)]) == pytest.approx(0.5, abs=0.02)


def test_rankings_are_of_neighbours_and_of_the_first_with_each_later():
    lengths = np.repeat(np.arange(1, 31)[:, None, None], 4, axis=1)
    lengths[:, 2] = lengths[::-1, 2]
    found = analyze_lengths(table(lengths))
    assert [(r.source, r.target, r.auc) for r in found.adjacent] == [("0", "1", 1.0), ("1", "2", 0.0), ("2", "3", 0.0)]
    assert [(r.source, r.target, r.auc) for r in found.first_to_later] == [
        ("0", "1", 1.0),
        ("0", "2", 0.0),
        ("0", "3", 1.0),
    ]


def test_quantiles_and_the_share_at_the_longest_are_those_of_all_rows():
    found = analyze_lengths(table(np.array([*range(1, 98), 100, 100, 100]).reshape(50, 1, 2)))
    assert (found.rows, found.prompts, found.longest, found.share_at_longest) == (100, 50, 100, 0.03)
    assert (found.p50, found.p90) == pytest.approx((50.5, 90.1))


def test_the_command_prints_and_writes_the_analysis(tmp_path, capsys):
    lengths = constructed(12, 3, 4, (1000, 100, 100, 300)).astype(int)
    rows = [f"p{i},{s},{tokens}" for (i, s, _), tokens in np.ndenumerate(lengths)]
    path = write_csv(tmp_path / "lengths.csv", rows)
    assert cli.main(["analyze", "lengths", str(path), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "144 responses, 12 prompts, 3 checkpoints" in printed and "none" not in printed
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    expected = analyze_lengths(read_lengths(path))
    assert results["p90"] == expected.p90
    assert results["variance"]["sums_of_squares"] == dict(expected.variance.sums_of_squares)
    assert [ranking["auc"] for ranking in results["adjacent"]] == [ranking.auc for ranking in expected.adjacent]


def test_the_command_says_what_data_cannot_tell(tmp_path, capsys):
    assert cli.main(["analyze", "lengths", str(write_csv(tmp_path / "t.csv", ["a,1,5", "b,1,6"]))]) == 0
    printed = capsys.readouterr().out
    assert "no prompt has a second response" in printed and "none (it takes two with 10 prompts in common)" in printed


@pytest.mark.parametrize("arguments", [["missing.csv"], ["t.csv", "--out", "t.csv/folder"]])
def test_the_command_refuses_bad_input_in_one_line_with_exit_code_2(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "t.csv", ["a,1,5", "a,1,6"])
    assert cli.main(["analyze", "lengths", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tailsieve: error: ") and arguments[-1].split("/")[0] in line
