"""Makes speculation with gated delta nets (Qwen3.5) right on a CPU, at every draft depth. Imported by `cpu_drafts.py`.

convolution
    version   vLLM 0.30.0, model_executor/layers/mamba/ops/cpu/gdn_attention.py: _spec_forward
    why       the convolution's state of a sequence holds its last inputs, one more for each token that may be rejected.
              vLLM writes them to the end of the largest such state and reads them from the front: with fewer drafts
              than the largest depth it goes on from the wrong inputs, and if more tokens were accepted in the step
              before than there are now, the kernel ends the engine
    the end   when tests/live/test_speculation.py and test_cpu_drafts.py pass without it

states
    version   vLLM 0.30.0, v1/attention/backends/gdn_attn.py
    why       a step that verifies drafts leaves a state behind each of its tokens, and the next takes the one behind
              the last that was accepted. If it verifies none itself it takes the first, whatever was accepted
    the end   the same; see also vLLM's issue 39273

contiguous
    version   vLLM 0.30.0, _custom_ops.py: fused_sigmoid_gating_delta_rule_update_cpu
    why       decoding one request without drafts hands the kernel a slice of the block table, whose last stride is not
              1, and the kernel ends the engine
    the end   the same
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from vllm import _custom_ops as ops
from vllm.model_executor.layers.mamba.ops.cpu import gdn_attention
from vllm.v1.kv_cache_interface import MambaSpec
from vllm.v1.worker.cpu_model_runner import CPUModelRunner

NATIVE_WIDTH = 4
"""The only width of a convolution that vLLM's kernel knows."""


def spec_forward(
    layer: Any,
    metadata: Any,
    mixed_qkv: torch.Tensor,
    b: torch.Tensor,
    a: torch.Tensor,
    conv_states: torch.Tensor,
    ssm_states: torch.Tensor,
    width: int,
    _state_length: int,
) -> torch.Tensor:
    """vLLM's `_spec_forward`: one step of the sequences that verify drafts, tokens in sequence order.

    `conv_states` (slots, channels, length) holds at its front the inputs that the next convolution begins with if one
    token is accepted, shifted by one for each further. The recurrent state after token t is in the slot of column t.
    """
    count = metadata.num_spec_decodes
    slots = metadata.spec_state_indices_tensor[:count].to(torch.int32).contiguous()
    accepted = metadata.num_accepted_tokens[:count].to(torch.int32)
    starts = metadata.spec_query_start_loc[: count + 1].to(torch.int32)
    lengths = starts.diff()
    convolved = torch.empty_like(mixed_qkv)
    for length in lengths.unique().tolist():  # one, but for sequences near the end of the context
        rows = (lengths == length).nonzero().squeeze(1)
        tokens = (starts[:-1][rows, None] + torch.arange(length)).flatten()
        inputs = mixed_qkv[tokens].view(len(rows), length, -1)
        outputs = _convolve(layer, inputs, conv_states, slots[rows, 0], accepted[rows], width)
        convolved[tokens] = outputs.reshape(len(tokens), -1).to(convolved.dtype)
    query, key, value = layer.rearrange_mixed_qkv(convolved)
    return ops.fused_sigmoid_gating_delta_rule_update_spec_cpu(
        A_log=layer.A_log,
        dt_bias=layer.dt_bias,
        q=query.squeeze(0),
        k=key.squeeze(0),
        v=value.squeeze(0),
        a=a,
        b=b,
        initial_state_source=ssm_states,
        spec_state_indices=slots,
        num_accepted_tokens=accepted.contiguous(),
        cu_seqlens=starts.contiguous(),
        use_qk_l2norm_in_kernel=True,
    )


def _convolve(
    layer: Any, inputs: torch.Tensor, states: torch.Tensor, slots: torch.Tensor, accepted: torch.Tensor, width: int
) -> torch.Tensor:
    """Causal convolution of `inputs` (sequences, tokens, channels) behind their states, which are moved on."""
    length = inputs.shape[1]
    states = states[:, :, : width - 1 + max(length, int(accepted.max())) - 1]
    silu = layer.activation == "silu"
    native = (
        torch.cpu._is_amx_tile_supported() and width == NATIVE_WIDTH and not gdn_attention.is_conv_state_dim_first()
    )
    if native and int(accepted.max()) > length:  # more than the kernel takes
        states[slots.long(), :, : width - 1] = _last_inputs(states, slots, accepted, width)
        accepted = torch.ones_like(accepted)
    if native:
        return ops.causal_conv1d_update_cpu(
            x=inputs.contiguous(),
            conv_states=states[:, :, : width - 1 + length - 1],
            weight=layer.conv1d.weight,
            bias=layer.conv1d.bias,
            silu_activation=silu,
            conv_state_indices=slots.contiguous(),
            is_vnni=True,
            num_accepted_tokens=accepted.contiguous(),
        )
    past = _last_inputs(states, slots, accepted, width)
    following = torch.cat([past, inputs.transpose(1, 2).to(past.dtype)], dim=2)
    states[slots.long(), :, : width - 1 + length - 1] = following[:, :, 1:]
    weight = gdn_attention._unpacked_conv_weight(layer).unsqueeze(1)
    outputs = F.conv1d(following, weight, layer.conv1d.bias, groups=weight.shape[0]).transpose(1, 2)
    return F.silu(outputs) if silu else outputs


def _last_inputs(states: torch.Tensor, slots: torch.Tensor, accepted: torch.Tensor, width: int) -> torch.Tensor:
    """What a convolution begins with, (sequences, channels, width - 1)."""
    kept = states[slots.long()]
    window = (accepted.long() - 1)[:, None, None] + torch.arange(width - 1)
    return kept.gather(2, window.expand(-1, kept.shape[1], -1))


def settle(runner: Any, scheduled: Any) -> None:
    """Put the state of each sequence that verifies no drafts in this step where such a step looks for it."""
    batch = runner.input_batch
    counts = batch.num_accepted_tokens_cpu_tensor[: batch.num_reqs]
    drafts, tokens = scheduled.scheduled_spec_decode_tokens, scheduled.num_scheduled_tokens
    verifying = {request for request, found in drafts.items() if found and tokens[request] == len(found) + 1}
    rows = [row for row, request in enumerate(batch.req_ids) if counts[row] > 1 and request not in verifying]
    if not rows:
        return
    accepted = counts[rows].long()
    for group_id, group in enumerate(runner.kv_cache_config.kv_cache_groups):
        if not isinstance(group.kv_cache_spec, MambaSpec):
            continue
        table = batch.block_table[group_id].get_cpu_tensor()[rows].long()
        first, last = table[:, 0], table.gather(1, accepted[:, None] - 1).squeeze(1)
        for name in group.layer_names:
            layer = runner.compilation_config.static_forward_context[name]
            inputs, states = gdn_attention._conv_buffer_view(layer), gdn_attention._ssm_state_view(layer)
            states[first] = states[last]
            width = inputs.shape[2] - runner.num_spec_tokens + 1
            inputs[first, :, : width - 1] = _last_inputs(inputs, first, accepted, width)
    counts[rows] = 1


def with_settled_states(original: Callable[..., Any]) -> Callable[..., Any]:
    """The runner's preparation of a step, after `settle`."""

    @functools.wraps(original)
    def prepare_inputs(runner: Any, scheduled: Any, *arguments: Any, **keywords: Any) -> Any:
        if runner.num_spec_tokens and runner.model_config.is_hybrid:
            settle(runner, scheduled)
        return original(runner, scheduled, *arguments, **keywords)

    return prepare_inputs


def with_contiguous_arguments(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The kernel with its arguments copied where their last stride is not 1, but for the states, which it changes."""

    @functools.wraps(original)
    def contiguous(**arguments: Any) -> torch.Tensor:
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and name != "initial_state_source" and value.stride(-1) != 1:
                arguments[name] = value.clone(memory_format=torch.contiguous_format)
        return original(**arguments)

    return contiguous


def mend() -> None:
    """Put all of them in place."""
    gdn_attention._spec_forward = spec_forward
    CPUModelRunner._prepare_inputs = with_settled_states(CPUModelRunner._prepare_inputs)
    ops.fused_sigmoid_gating_delta_rule_update_cpu = with_contiguous_arguments(
        ops.fused_sigmoid_gating_delta_rule_update_cpu
    )
