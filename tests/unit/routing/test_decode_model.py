import json
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailsieve_rl.routing.decode_model import (
    DecodeModel,
    DecodePoint,
    ProfileError,
    fit_isotonic,
    isotonic,
    load_profile,
    save_profile,
)

PROFILE = {
    "model": "Qwen3.5-2B",
    "device": "H100",
    "engine": "vllm 0.30",
    "kind": "modelled",
    "points": [{"b": 1, "tau_s": 0.004}, {"b": 16, "tau_s": 0.007}, {"b": 32, "tau_s": 0.009, "draft_depth": 0}],
    "how": "roofline",
}


def model(*points):
    return DecodeModel(tuple(DecodePoint(*point) for point in points))


def written(tmp_path, **changes):
    path = tmp_path / "h100.json"
    path.write_text(json.dumps({**PROFILE, **changes}), encoding="utf-8")
    return path


def test_tau_is_linear_between_points_and_zero_without_requests():
    curve = model((8, 0.006), (1, 0.004), (2, 0.005))
    assert curve.tau([0, 1, 2, 5, 8]) == pytest.approx([0.0, 0.004, 0.005, 0.0055, 0.006])
    assert curve.tau(5) == pytest.approx(0.0055)


def test_beyond_the_last_point_tau_goes_on_with_its_slope_over_the_last_doubling():
    curve = model((1, 0.004), (16, 0.007), (31, 0.009), (32, 0.0090))
    assert curve.tau([32, 48, 64]) == pytest.approx([0.009, 0.011, 0.013])


@pytest.mark.parametrize("points", [[(1, 0.004)], [(1, 0.004), (8, 0.007), (16, 0.006)]])
def test_beyond_the_last_point_tau_never_falls_and_a_single_point_stays_constant(points):
    assert model(*points).tau(500) == pytest.approx(points[-1][1])


def test_each_draft_depth_has_a_tau_of_its_own():
    curve = model((1, 0.004), (8, 0.006), (1, 0.002, 3), (8, 0.005, 3))
    assert curve.depths == (0, 3)
    assert curve.tau(8) == 0.006 and curve.tau(8, draft_depth=3) == 0.005
    with pytest.raises(ValueError, match=r"draft_depth = 2 is not known, only at \(0, 3\)"):
        curve.tau(8, draft_depth=2)


def test_the_table_starts_with_zero_and_has_an_entry_for_each_batch_size():
    table = model((1, 0.004), (4, 0.007)).table(5)
    assert table == pytest.approx([0.0, 0.004, 0.005, 0.006, 0.007, 0.008])


def test_a_profile_is_read_with_everything_that_it_says(tmp_path):
    curve = load_profile(written(tmp_path))
    assert (curve.model, curve.device, curve.engine, curve.kind) == ("Qwen3.5-2B", "H100", "vllm 0.30", "modelled")
    assert curve.points == (DecodePoint(1, 0.004), DecodePoint(16, 0.007), DecodePoint(32, 0.009))
    assert curve.notes == {"how": "roofline"}


points = st.builds(DecodePoint, st.integers(2, 512), st.floats(1e-6, 10.0), st.sampled_from([0, 1, 4]))


@given(
    st.lists(points, max_size=8, unique_by=lambda p: (p.b, p.draft_depth)), st.sampled_from(["measured", "modelled"])
)
def test_a_saved_profile_is_read_back_as_the_same_model(tmp_path_factory, more, kind):
    firsts = [DecodePoint(1, 0.01, depth) for depth in (0, 1, 4)]
    curve = DecodeModel((*firsts, *more), "m", "d", "e", kind, {"how": ["by hand"], "seed": 3})
    path = tmp_path_factory.mktemp("profile") / "p.json"
    save_profile(curve, path)
    assert load_profile(path) == curve


def test_notes_cannot_overwrite_what_a_profile_says(tmp_path):
    save_profile(DecodeModel((DecodePoint(1, 0.01),), notes={"points": [], "kind": "x"}), tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json").points == (DecodePoint(1, 0.01),)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"points": [{"b": 2, "tau_s": 1.0}]}, "the points of draft_depth = 0 lack b = 1"),
        ({"points": [*PROFILE["points"], {"b": 2, "tau_s": 1.0, "draft_depth": 3}]}, "draft_depth = 3 lack b = 1"),
        ({"points": [{"b": 1, "tau_s": 0}]}, "b = 1 of draft_depth = 0: tau_s = 0.0 must be a positive number"),
        ({"points": [{"b": 1, "tau_s": -0.5}]}, "tau_s = -0.5 must be a positive number"),
        ({"points": [{"b": 1, "tau_s": inf}]}, "tau_s = inf must be a positive number"),
        ({"points": [{"b": 1, "tau_s": nan}]}, "tau_s = nan must be a positive number"),
        (
            {"points": [*PROFILE["points"], {"b": 16, "tau_s": 1.0}]},
            "the point b = 16 of draft_depth = 0 is given twice",
        ),
        ({"points": [{"b": 0, "tau_s": 1.0}]}, "the point b = 0 of draft_depth = 0: b must be 1 or more"),
        (
            {"points": [{"b": 1, "tau_s": 1.0, "draft_depth": -1}]},
            "draft_depth = -1: b must be 1 or more, and draft_depth",
        ),
        (
            {"points": [{"b": 1.5, "tau_s": 1.0}]},
            "b = 1.5 of the point {'b': 1.5, 'tau_s': 1.0} must be a whole number",
        ),
        ({"points": [{"b": True, "tau_s": 1.0}]}, "b = True"),
        ({"points": [{"b": 1, "tau_s": "fast"}]}, "tau_s = 'fast'"),
        ({"points": [{"b": 1}]}, "tau_s = None"),
        ({"points": [7]}, "a point must be an object with b and tau_s, not 7"),
        ({"points": []}, "points = [] must be a list with at least one point"),
        ({"points": None}, "points = None must be a list"),
        ({"kind": "guessed"}, "kind = 'guessed' must be 'measured' or 'modelled'"),
        ({"device": 8}, "device = 8 must be a string"),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused_with_its_file_and_the_value(tmp_path, changes, words):
    path = written(tmp_path, **changes)
    with pytest.raises(ProfileError) as refusal:
        load_profile(path)
    assert str(refusal.value).startswith(f"decode profile {path}: ") and words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("text", "words"), [("{", "Expecting"), ("[1]", "must be an object"), (None, "No such file")])
def test_a_file_that_is_no_profile_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=words) as refusal:
        load_profile(path)
    assert str(refusal.value).startswith(f"decode profile {path}: ")


def test_a_model_needs_a_point():
    with pytest.raises(ProfileError, match="draft_depth = 0 lack b = 1"):
        DecodeModel(())


values = st.lists(st.tuples(st.floats(-9, 9), st.floats(0.1, 5)), min_size=1, max_size=12)


@given(values)
def test_the_isotonic_fit_is_the_largest_of_smallest_means_at_each_place(pairs):
    """The max-min formula, which has one solution: the weighted least squares fit."""
    value, weight = np.array(pairs).T
    n = len(pairs)
    mean = np.array(
        [[np.average(value[a : b + 1], weights=weight[a : b + 1]) for b in range(a, n)] + [inf] * a for a in range(n)]
    )
    expected = [max(min(mean[a][b - a] for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    assert isotonic(value, weight) == pytest.approx(expected, abs=1e-9)


def test_samples_of_one_batch_size_are_averaged_by_weight_and_violations_pooled():
    fit = fit_isotonic([(4, 0.008, 1.0), (1, 0.005, 1.0), (1, 0.002, 3.0), (2, 0.009, 1.0)])
    assert [(p.b, p.tau_s) for p in fit.points] == [
        (1, pytest.approx(0.00275)),
        (2, pytest.approx(0.0085)),
        (4, pytest.approx(0.0085)),
    ]


def test_without_a_sample_at_one_request_the_smallest_batch_size_stands_for_it():
    fit = fit_isotonic([(8, 0.006, 1.0), (16, 0.009, 1.0)], draft_depth=2)
    assert [(p.b, p.tau_s, p.draft_depth) for p in fit.points] == [(1, 0.006, 2), (8, 0.006, 2), (16, 0.009, 2)]
    with pytest.raises(ValueError, match="without samples"):
        fit_isotonic([])
