"""The stream of prompts: exact draws, the reserve, epochs, resuming."""

import pytest
from omegaconf import OmegaConf
from torchdata.stateful_dataloader import StatefulDataLoader
from verl.trainer.ppo.utils import create_rl_sampler

from tailsieve_rl.rollout.prompt_stream import PromptStream

ROWS = [{"row": i} for i in range(20)]
SHUFFLED = OmegaConf.create({"shuffle": True, "seed": 7})


def _stream(reserve: int = 0) -> PromptStream:
    return PromptStream(ROWS, create_rl_sampler(SHUFFLED, ROWS), list, reserve)


def test_the_order_is_that_of_verls_own_loader_in_every_epoch() -> None:
    loader = StatefulDataLoader(
        ROWS, batch_size=1, sampler=create_rl_sampler(SHUFFLED, ROWS), collate_fn=lambda rows: rows[0]["row"]
    )
    expected = [row for _ in range(3) for row in loader]
    assert [prompt.index for prompt in _stream().draw(60)] == expected


def test_each_epoch_yields_every_prompt_once_but_the_reserve() -> None:
    stream = _stream(reserve=6)
    reserved = {prompt.index for prompt in stream.reserved()}
    assert len(reserved) == 6 and stream.epoch_prompts == 14
    for _ in range(3):
        assert {prompt.index for prompt in stream.draw(14)} == set(range(20)) - reserved


def test_the_reserve_is_the_end_of_the_first_epochs_order() -> None:
    whole = [prompt.index for prompt in _stream().draw(20)]
    assert [prompt.index for prompt in _stream(reserve=6).reserved()] == whole[-6:]


def test_no_two_draws_of_a_run_have_the_same_uid() -> None:
    stream = _stream(reserve=6)
    uids = [prompt.uid for prompt in stream.draw(40) + stream.reserved()]
    assert len(set(uids)) == len(uids)
    assert not any("_" in uid for uid in uids), "verl splits its keys at underscores"


@pytest.mark.parametrize("drawn", [0, 5, 14, 15, 28, 33])
def test_a_resumed_stream_goes_on_where_the_saved_one_stood_also_across_epochs(drawn: int) -> None:
    first, resumed = _stream(reserve=6), _stream(reserve=6)
    first.draw(drawn)
    resumed.load_state_dict(first.state_dict())
    assert [p.uid for p in resumed.draw(30)] == [p.uid for p in first.draw(30)]


def test_a_rewound_stream_saves_the_earlier_state() -> None:
    stream = _stream()
    stream.draw(18)
    before = stream.state_dict()
    stream.draw(7)
    stream.rewind(before)
    assert stream.state_dict() == before


def test_a_checkpoint_with_another_reserve_is_refused() -> None:
    with pytest.raises(ValueError, match="kept 6 prompts back for the warm-up, this run 0"):
        _stream().load_state_dict(_stream(reserve=6).state_dict())


def test_the_state_of_verls_own_loader_leaves_the_stream_at_its_start() -> None:
    stream = _stream()
    stream.load_state_dict({"_snapshot": {}})  # type: ignore[dict-item]
    assert stream.state_dict()["position"] == 0


def test_seeking_skips_whole_epochs_and_prompts() -> None:
    stream = _stream()
    stream.seek(1, 5)
    assert [p.uid for p in stream.draw(3)] == [p.uid for p in _stream().draw(28)[25:]]
