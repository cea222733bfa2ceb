"""Makes vLLM's speculation run on a CPU without Triton. Imported in the worker's process, before a model is loaded.

launchers
    version   vLLM 0.30.0, v1/worker/cpu_model_runner.py: _postprocess_triton
    why       it puts the CPU kernels under the names of some of the Triton ones, while the launchers keep what they
              were made with, and fail ("Cannot inspect kernel parameters for function"). Two of the kernels would fail
              next: `expand` names an argument otherwise, and casts the output to integers, which loses the
              temperatures; the one for the positions of the next draft names an argument otherwise
    the end   when tests/live/test_calibrate.py, at a draft depth, passes without --worker-extension-cls

Gated delta nets need more: `cpu_delta_net.py`.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.triton_utils import HAS_TRITON
from vllm.utils import cpu_triton_utils
from vllm.v1.sample import rejection_sampler
from vllm.v1.spec_decode import utils as draft_utils

from tailsieve_rl.engines.vllm import cpu_delta_net
from tailsieve_rl.versions import no_speculation


class DraftExtension:
    """Adds nothing to the worker: naming it is what imports this module."""


def expand(
    output: torch.Tensor, input: torch.Tensor, cu_num_tokens: torch.Tensor, replace_from: Any, replace_to: Any, **_: Any
) -> None:
    """A value for each request to one for each of its tokens, with one value replaced by another."""
    counts = torch.diff(cu_num_tokens.long(), prepend=cu_num_tokens.new_zeros(1, dtype=torch.long))
    output.copy_(torch.where(input == replace_from, replace_to, input).repeat_interleave(counts))


def next_positions(
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_table_stride: int,
    seq_lens: torch.Tensor,
    out_clamped_positions: torch.Tensor,
    out_slot_mapping: torch.Tensor,
    block_size: int,
    max_model_len: int,
    n_blocks_per_req: int,
    PAD_ID: int,
    batch_size: int,
) -> None:
    """The positions of the next draft, with the argument named as its launcher does."""
    cpu_triton_utils._eagle_step_slot_mapping_metadata_kernel_impl(
        positions,
        block_table,
        block_table_stride,
        seq_lens,
        out_clamped_positions,
        out_slot_mapping,
        block_size,
        max_model_len,
        n_blocks_per_req,
        PAD_ID,
        batch_size,
    )


def launchers() -> None:
    """Give each launcher the CPU's kernel."""
    wrapped = cpu_triton_utils._FuncWrapper
    for launcher, kernel in (
        (rejection_sampler._expand, wrapped(expand)),
        (rejection_sampler._rejection_greedy_sample, cpu_triton_utils.rejection_greedy_sample_kernel),
        (rejection_sampler._rejection_random_sample, cpu_triton_utils.rejection_random_sample_kernel),
        (rejection_sampler._sample_recovered_tokens, cpu_triton_utils.sample_recovered_tokens_kernel),
        (draft_utils._eagle_step_slot_mapping_metadata, wrapped(next_positions)),
        (draft_utils._copy_and_expand_dflash_inputs, cpu_triton_utils.copy_and_expand_dflash_inputs_kernel),
    ):
        launcher.kernel = kernel
        launcher.__dict__.pop("_kernel_arg_names", None)  # kept from the kernel before


if not HAS_TRITON and not no_speculation():
    launchers()
    cpu_delta_net.mend()
