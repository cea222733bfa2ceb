"""Engine arguments that a CPU engine needs where the user gave none."""

from __future__ import annotations

import logging
import os
from typing import Any

from verl.workers.rollout.vllm_rollout.utils import build_cli_args_from_config

logger = logging.getLogger(__name__)

BLOCK_SIZE = 128
GIB = 1 << 30
KV_ARGUMENTS = {"block_size", "num_gpu_blocks_override", "kv_cache_memory_bytes"}


def fill(engine_kwargs: dict[str, Any], rollout: Any, hf_config: Any) -> None:
    """Add to `engine_kwargs`, given verl's rollout and Hugging Face's model configuration."""
    ranks = rollout.tensor_model_parallel_size * rollout.pipeline_model_parallel_size * rollout.data_parallel_size
    if ranks == 1 and os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
        engine_kwargs.setdefault("distributed_executor_backend", "uni")
    # vLLM 0.30 rewinds the generator of a seeded request whose prompt it cut in two; a CPU generator cannot be rewound,
    # and the engine dies of it.
    length = engine_kwargs.get("max_model_len", rollout.max_model_len)
    if engine_kwargs.get("max_num_batched_tokens", rollout.max_num_batched_tokens) >= length:
        _set_false(engine_kwargs, "enable_chunked_prefill")
        if _recurrent(hf_config) and rollout.enable_prefix_caching:  # which for these layers cuts prompts
            logger.warning("prefix caching is off: on a CPU it does not go with recurrent layers")
            _set_false(engine_kwargs, "enable_prefix_caching")
    if not KV_ARGUMENTS & engine_kwargs.keys():
        blocks = kv_blocks(rollout.max_num_seqs, length, hf_config)
        if blocks is not None:
            engine_kwargs.update(block_size=BLOCK_SIZE, num_gpu_blocks_override=blocks)


def _set_false(engine_kwargs: dict[str, Any], flag: str) -> None:
    """Unless the user set it. verl 0.9.0 leaves False out of the command line, and vLLM's default would hold."""
    if build_cli_args_from_config({flag: False}):
        engine_kwargs.setdefault(flag, False)
    elif flag not in engine_kwargs:
        engine_kwargs[f"no-{flag.replace('_', '-')}"] = True


def kv_blocks(max_num_seqs: int, max_model_len: int, hf_config: Any) -> int | None:
    """Blocks that hold every admitted sequence at full length, which for a small model is little.

    None, and vLLM fills VLLM_CPU_KVCACHE_SPACE, where that space would not suffice, or where the cache is not
    plain attention's: other layers and latent attention have block sizes of their own.
    """
    text = hf_config.get_text_config()
    if getattr(text, "kv_lora_rank", None) or any(kind != "full_attention" for kind in _layers(hf_config)):
        return None
    blocks = max_num_seqs * -(-max_model_len // BLOCK_SIZE) + 1
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    bytes_per_block = BLOCK_SIZE * 2 * text.num_hidden_layers * heads * head_dim * 4
    space = int(os.environ.get("VLLM_CPU_KVCACHE_SPACE") or 0) * GIB
    return blocks if blocks * bytes_per_block <= space else None


def _recurrent(hf_config: Any) -> bool:
    return "linear_attention" in _layers(hf_config)


def _layers(hf_config: Any) -> list[str]:
    return list(getattr(hf_config.get_text_config(), "layer_types", None) or ())
