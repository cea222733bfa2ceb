"""What reaches the engine beside verl's own parameters."""

from tailsieve_rl.config.settings import SamplingSettings
from tailsieve_rl.rollout.sampling import request_params, request_seed

BASE = {"temperature": 0.7, "top_p": 0.8}
ROW = {"raw_prompt": [{"role": "user", "content": "1+1"}], "lengths": [5, 9]}
PAPER = SamplingSettings(presence_penalty=1.5, stop=("<END>",), seed=42)


def test_the_papers_parameters_are_added_to_verls() -> None:
    params = request_params(BASE, PAPER, step=3, row=ROW, session=0)
    assert params["temperature"] == 0.7 and params["presence_penalty"] == 1.5 and params["stop"] == ["<END>"]
    assert "seed" in params and "presence_penalty" not in BASE


def test_nothing_is_added_by_default() -> None:
    assert request_params(BASE, SamplingSettings(), step=3, row=ROW, session=0) == BASE


def test_validation_takes_all_but_the_seed_and_forced_lengths() -> None:
    params = request_params(BASE, PAPER, step=3, row=ROW, session=0, length=9, validate=True)
    assert params["presence_penalty"] == 1.5 and params["stop"] == ["<END>"]
    assert "seed" not in params and "max_tokens" not in params


def test_each_request_has_a_seed_of_its_own_and_the_same_one_in_a_paired_run() -> None:
    prompts = [[{"role": "user", "content": str(i)}] for i in range(20)]
    seeds = [request_seed(42, step, p, s) for step in (1, 2) for p in prompts for s in range(8)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [request_seed(42, step, p, s) for step in (1, 2) for p in prompts for s in range(8)]
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_another_run_seed_gives_other_request_seeds() -> None:
    assert request_seed(1, 1, ROW["raw_prompt"], 0) != request_seed(2, 1, ROW["raw_prompt"], 0)


def test_a_replayed_length_is_forced_for_each_session() -> None:
    params = request_params(BASE, PAPER, step=3, row=ROW, session=1, length=9)
    assert (params["max_tokens"], params["min_tokens"], params["ignore_eos"]) == (9, 9, True)
    assert "stop" not in params
