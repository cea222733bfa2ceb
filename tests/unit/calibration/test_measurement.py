"""tau(b) is recovered from an engine over HTTP, and what cannot be measured is refused."""

import json

import pytest

from tailsieve_rl import cli
from tailsieve_rl.routing.decode_model import load_profile

from .fake_engine import FakeEngine, serving


def tau(b: int) -> float:
    return 0.002 + 0.00005 * b


@pytest.fixture
def measure(tmp_path, capsys):
    """Calibrate a fake engine: exit code, lines on standard error, the profile's path."""

    def run(engine, *arguments, model="fake"):
        out = tmp_path / "profile.json"
        with serving(engine):
            code = cli.main(["calibrate", "--model", model, "--out", str(out), "--url", engine.url, *arguments])
        return code, capsys.readouterr().err.splitlines(), out

    return run


def test_a_given_tau_is_recovered_within_two_percent(measure):
    code, err, out = measure(FakeEngine(tau))
    assert (code, len(err)) == (0, 8)
    profile = load_profile(out)
    assert [point.b for point in profile.points] == [1, 2, 4, 8, 16, 32, 64, 128]
    for point in profile.points:
        assert point.tau_s == pytest.approx(tau(point.b), rel=0.02)
    assert (profile.kind, profile.model, profile.engine) == ("measured", "fake", "vllm 0.0-fake")


def test_each_point_is_told_with_its_spread(measure):
    _, err, _ = measure(FakeEngine(lambda b: 0.004), "--batch-sizes", "1,8", "--repeats", "2")
    assert err == [f"calibrate: b = {b}: 4.00 ms a token (4.00-4.00), 2 repeats" for b in (1, 8)]


def test_tau_is_the_median_of_the_repeats(measure):
    engine = FakeEngine(tau)
    decode, calls = engine.decode, iter((1, 1, 9, 1))  # the warm-up, then three repeats

    def disturbed(b, tokens):
        slow = next(calls)
        engine.tau = lambda running: slow * tau(running)
        decode(b, tokens)

    engine.decode = disturbed
    _, _, out = measure(engine, "--batch-sizes", "1", "--repeats", "3")
    assert load_profile(out).points[0].tau_s == pytest.approx(tau(1))
    assert json.loads(out.read_text())["measured"][0]["samples_s"] == pytest.approx([tau(1), 9 * tau(1), tau(1)])


def test_the_profile_does_not_decrease_and_keeps_what_was_measured(measure):
    _, _, out = measure(FakeEngine(lambda b: 0.003 if b == 1 else 0.002), "--batch-sizes", "1,2,4")
    assert [point.tau_s for point in load_profile(out).points] == pytest.approx([0.007 / 3] * 3, rel=0.01)
    measured = json.loads(out.read_text())["measured"]
    assert [point["median_s"] for point in measured] == pytest.approx([0.003, 0.002, 0.002], rel=0.01)


def test_the_profile_says_how_to_repeat_it(measure):
    _, _, out = measure(FakeEngine(tau), "--batch-sizes", "2,1", "--tokens", "64")
    profile = json.loads(out.read_text())
    assert profile["command"].startswith("tailsieve calibrate --model fake")
    assert (profile["tokens"], profile["repeats"], profile["batch_sizes"]) == (64, 3, [1, 2])
    assert profile["versions"]["tailsieve-rl"]
    assert len(profile["measured"][0]["samples_s"]) == 3


def test_all_requests_of_a_point_arrive_together_with_prompts_of_their_own(measure):
    engine = FakeEngine(tau)
    measure(engine, "--batch-sizes", "1,4", "--tokens", "64", "--repeats", "1", "--prompt-tokens", "7")
    assert [(len(call["prompt"]), call["max_tokens"]) for call in engine.calls] == [(1, 32), (1, 64), (4, 32), (4, 64)]
    prompts = [tuple(prompt) for call in engine.calls for prompt in call["prompt"]]
    assert len(set(prompts)) == len(prompts) == 10
    assert {len(prompt) for prompt in prompts} == {7}
    assert all(call["ignore_eos"] and call["temperature"] == 1.0 for call in engine.calls)


@pytest.mark.parametrize(
    ("name", "text", "sent"),
    [
        ("a.txt", "one\n\ntwo\n", ["one", "two", "one"]),
        ("a.jsonl", '"one"\n{"prompt": [5, 6]}\n[7]\n', ["one", [5, 6], [7]]),
    ],
)
def test_prompts_of_a_file_are_used_in_turn(measure, tmp_path, name, text, sent):
    (tmp_path / name).write_text(text)
    engine = FakeEngine(tau)
    assert measure(engine, "--batch-sizes", "1", "--repeats", "2", "--prompts", str(tmp_path / name))[0] == 0
    assert [prompt for call in engine.calls for prompt in call["prompt"]] == sent


def test_the_draft_depth_of_a_running_engine_is_written_down(measure):
    _, err, out = measure(FakeEngine(tau, drafts=3), "--batch-sizes", "1", "--draft-depths", "3")
    assert load_profile(out).depths == (3,)
    assert err[0].startswith("calibrate: draft depth 3, b = 1: ")


def test_a_profile_with_drafts_says_how_many_are_accepted(measure):
    engine = FakeEngine(tau, drafts=3, accepted=2)
    code, _, out = measure(engine, "--batch-sizes", "1,4", "--draft-depths", "3", "--tokens", "64", "--repeats", "2")
    assert code == 0
    profile = load_profile(out)
    assert profile.acceptance.at_least == (1.0, 1.0, 0.0)
    assert profile.tau([1, 4], 3) == pytest.approx([tau(1) / 3, tau(4) / 3], rel=0.02)
    # 63 tokens after the first are 21 verifications of each request; the warm-up is not among them.
    assert [point["verifications"] for point in json.loads(out.read_text())["measured"]] == [
        [0, 0, 42, 0],
        [0, 0, 168, 0],
    ]


def test_a_profile_without_drafts_has_no_acceptance(measure):
    _, _, out = measure(FakeEngine(tau), "--batch-sizes", "1")
    assert load_profile(out).acceptance is None


@pytest.mark.parametrize(("has", "asked"), [(0, "3"), (3, "0"), (2, "3")])
def test_an_engine_that_drafts_more_or_less_than_was_said_is_refused(measure, has, asked):
    code, err, out = measure(FakeEngine(tau, drafts=has), "--batch-sizes", "1", "--draft-depths", asked)
    assert (code, out.exists()) == (1, False)
    assert err[-1] == f"tailsieve: error: the engine drafts {has} tokens at once, not {asked} (--draft-depths)"


def test_counters_that_come_late_are_waited_for(measure):
    code, _, out = measure(FakeEngine(tau, late_s=0.1), "--batch-sizes", "1,2", "--repeats", "2")
    assert code == 0
    assert load_profile(out).points[1].tau_s == pytest.approx(tau(2), rel=0.05)


@pytest.mark.parametrize(
    ("engine", "says"),
    [
        (FakeEngine(tau, max_num_seqs=3), "of b = 4 requests decoded at once"),
        (FakeEngine(tau, other_tokens=1), "other requests"),
        (FakeEngine(tau, preemptions=1), "preempted"),
        (FakeEngine(tau, cut=1), "not 32 each"),
        (FakeEngine(tau, no_metrics=True), "/metrics lacks vllm:"),
    ],
)
def test_an_engine_that_does_not_decode_b_requests_alone_and_together_is_refused(measure, engine, says):
    code, err, out = measure(engine, "--batch-sizes", "1,4")
    assert (code, out.exists()) == (1, False)
    assert err[-1].startswith("tailsieve: error: ")
    assert says in err[-1]


def test_tokens_beyond_what_the_engine_takes_are_refused_before_it_is_used(measure):
    engine = FakeEngine(tau, longest=100)
    code, err, _ = measure(engine)
    assert (code, len(err), engine.calls) == (2, 1, [])
    assert "--tokens = 256, after a prompt of 16, is beyond the 100 tokens" in err[0]


def test_another_model_behind_the_url_is_measured_with_a_warning(measure):
    code, err, out = measure(FakeEngine(tau, name="other"), "--batch-sizes", "1", model="mine")
    assert code == 0
    assert "warning:" in err[0] and "serves other, not mine" in err[0]
    assert load_profile(out).model == "other"


def test_a_url_with_nobody_behind_it_is_bad_input(capsys, tmp_path):
    out = str(tmp_path / "p.json")
    assert cli.main(["calibrate", "--model", "m", "--out", out, "--url", "http://127.0.0.1:9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tailsieve: error: --url: http://127.0.0.1:9")
