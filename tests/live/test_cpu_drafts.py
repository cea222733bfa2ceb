"""vLLM's kernels for speculation on a CPU, as mended, called without an engine."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from vllm.platforms import current_platform
from vllm.v1.sample.rejection_sampler import expand_batch_to_tokens, rejection_sample

from tailsieve_rl.engines.vllm import cpu_delta_net, cpu_drafts  # noqa: F401 - importing it mends

current_platform.import_kernels()
pytestmark = pytest.mark.speculation

VOCABULARY, ROWS, BONUS = 8, 20_000, 7
CRITICAL = {5: 25.8, 6: 27.9, 7: 29.9}
"""Of chi-square, by degrees of freedom: exceeded by chance once in 10,000 times."""


def follows(tokens: torch.Tensor, probabilities: torch.Tensor) -> bool:
    seen = torch.bincount(tokens.long(), minlength=len(probabilities)).double()
    expected = probabilities.double() * len(tokens)
    return ((seen - expected) ** 2 / expected).sum().item() < CRITICAL[len(probabilities) - 1]


@pytest.mark.parametrize("sampled", [False, True], ids=["greedy drafts", "sampled drafts"])
def test_verified_drafts_follow_the_targets_probabilities_and_not_the_drafters(sampled):
    """20,000 requests of two drafts each, the same for all but for chance: of each place, chi-square at 1e-4.

    At the first place a shift of 2 % of the probability between two of the 8 tokens is found with probability 0.99.
    """
    torch.manual_seed(1)
    target = torch.randn(2, VOCABULARY)
    drafter = torch.randn(2, VOCABULARY).softmax(-1)
    draft_probabilities = drafter.repeat(ROWS, 1) if sampled else None
    drafts = torch.multinomial(drafter, ROWS, replacement=True).T if sampled else drafter.argmax(-1).expand(ROWS, 2)
    output = rejection_sample(
        drafts.flatten().int().contiguous(),
        [2] * ROWS,
        2,
        torch.arange(2, 2 * ROWS + 1, 2, dtype=torch.int32),
        draft_probabilities,
        target.repeat(ROWS, 1),
        torch.full((ROWS, 1), BONUS),
        SimpleNamespace(all_greedy=False, all_random=True, temperature=torch.ones(ROWS), generators={}),
    )
    probabilities = target.softmax(-1)
    accepted = (output[:, 0] == drafts[:, 0]) & (output[:, 1] >= 0)
    assert 0.02 < accepted.float().mean() < 0.9
    assert follows(output[:, 0], probabilities[0])
    assert follows(output[accepted, 1], probabilities[1])
    both = accepted & (output[:, 1] == drafts[:, 1]) & (output[:, 2] >= 0)
    assert (output[both, 2] == BONUS).all() and (output[~both, 2] == -1).all() and (output[~accepted, 1:] == -1).all()


def test_greedy_requests_among_sampled_ones_keep_exactly_the_likeliest_tokens():
    torch.manual_seed(2)
    logits = torch.randn(3 * 4, VOCABULARY)
    drafts = logits.argmax(-1).view(4, 3)
    drafts[1, 1] = (drafts[1, 1] + 1) % VOCABULARY
    drafts[3, 0] = (drafts[3, 0] + 1) % VOCABULARY
    output = rejection_sample(
        drafts.flatten().int(),
        [3] * 4,
        3,
        torch.arange(3, 13, 3, dtype=torch.int32),
        None,
        logits.clone(),
        torch.full((4, 1), BONUS),
        SimpleNamespace(
            all_greedy=False, all_random=False, temperature=torch.tensor([0.0, 0.0, 1.0, 0.0]), generators={}
        ),
    )
    best = logits.argmax(-1).view(4, 3).tolist()
    assert output[0].tolist() == [*best[0], BONUS]
    assert output[1].tolist() == [*best[1][:2], -1, -1]
    assert output[3].tolist() == [best[3][0], -1, -1, -1]


def test_a_temperature_of_a_request_becomes_that_of_each_of_its_tokens():
    counts = torch.tensor([2, 2, 5], dtype=torch.int32)
    found = expand_batch_to_tokens(torch.tensor([0.7, 0.3, 0.0]), counts, 5, replace_from=0, replace_to=1)
    assert torch.equal(found, torch.tensor([0.7, 0.7, 1.0, 1.0, 1.0]))


WIDTH, LARGEST, CHANNELS = 4, 3, 64


@pytest.mark.parametrize("amx", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_convolution_goes_on_behind_the_accepted_tokens_at_every_depth(amx, length, monkeypatch):
    """Three sequences, of which 1, 4 and 2 tokens were accepted, whatever is verified now."""
    if amx and not torch.cpu._is_amx_tile_supported():
        pytest.skip("no AMX here")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(cpu_delta_net.gdn_attention, "is_conv_state_dim_first", lambda: False)
    torch.manual_seed(3)
    weight = torch.randn(CHANNELS, WIDTH).bfloat16() * 0.3
    conv1d = SimpleNamespace(weight=weight, bias=None, _cpu_unpacked_conv_weight=weight)
    if amx:
        conv1d.weight = cpu_delta_net.ops.causal_conv1d_weight_pack(weight)
    states = torch.randn(6, WIDTH - 1 + LARGEST, CHANNELS).bfloat16().transpose(1, 2)
    before = states.clone()
    inputs = torch.randn(3, length, CHANNELS).bfloat16()
    slots, accepted = torch.tensor([4, 1, 3], dtype=torch.int32), torch.tensor([1, 4, 2], dtype=torch.int32)
    layer = SimpleNamespace(conv1d=conv1d, activation="silu")
    outputs = cpu_delta_net._convolve(layer, inputs, states, slots, accepted, WIDTH)
    for row, (slot, count) in enumerate(zip(slots.tolist(), accepted.tolist(), strict=True)):
        text = torch.cat([before[slot, :, count - 1 : count - 1 + WIDTH - 1], inputs[row].T], dim=1)
        expected = F.silu(F.conv1d(text.float(), weight.float().unsqueeze(1), groups=CHANNELS)).T
        assert torch.allclose(outputs[row].float(), expected, atol=0.02)
        assert torch.equal(states[slot, :, : WIDTH - 1 + length - 1], text[:, 1:])
    untouched = np.setdiff1d(np.arange(6), slots.numpy())
    assert torch.equal(states[untouched], before[untouched])
