"""Makes vLLM's rejection sampler, and with it speculation, run on a CPU without Triton.

    version   vLLM 0.30.0, v1/worker/cpu_model_runner.py: _postprocess_triton
    why       it puts the CPU kernels under the names of the Triton ones, while the launchers keep what they were made
              with, and fail ("Cannot inspect kernel parameters for function"). Its kernel `expand` would fail next: its
              argument has another name, and it casts the output to integers, which loses the temperatures
    the end   when tests/live/test_calibrate.py, at a draft depth, passes without --worker-extension-cls

Named by `--worker-extension-cls`, this module is imported in the worker's process, before a model is loaded. It mends
the verification of drafts only: ngram needs no more, drafting models may.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.triton_utils import HAS_TRITON
from vllm.utils import cpu_triton_utils
from vllm.v1.sample import rejection_sampler


class DraftExtension:
    """Adds nothing to the worker: naming it is what imports this module."""


def expand(
    output: torch.Tensor, input: torch.Tensor, cu_num_tokens: torch.Tensor, replace_from: Any, replace_to: Any, **_: Any
) -> None:
    """A value for each request to one for each of its tokens, with one value replaced by another."""
    counts = torch.diff(cu_num_tokens.long(), prepend=cu_num_tokens.new_zeros(1, dtype=torch.long))
    output.copy_(torch.where(input == replace_from, replace_to, input).repeat_interleave(counts))


def mend() -> None:
    """Give each launcher the CPU's kernel."""
    for launcher, kernel in (
        (rejection_sampler._expand, cpu_triton_utils._FuncWrapper(expand)),
        (rejection_sampler._rejection_greedy_sample, cpu_triton_utils.rejection_greedy_sample_kernel),
        (rejection_sampler._rejection_random_sample, cpu_triton_utils.rejection_random_sample_kernel),
        (rejection_sampler._sample_recovered_tokens, cpu_triton_utils.sample_recovered_tokens_kernel),
    ):
        launcher.kernel = kernel
        launcher.__dict__.pop("_kernel_arg_names", None)  # kept from the kernel before


if not HAS_TRITON:
    mend()
