"""A Qwen3.5 of the chain with a multi-token prediction (MTP) head of a given acceptance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tailsieve_rl.checkpoints.chain import reading
from tailsieve_rl.checkpoints.tokenizer import VOCABULARY, write_tokenizer
from tailsieve_rl.checkpoints.weights import CERTAINTY, TINY, Size, check, speak, write
from tailsieve_rl.input_error import InputError

FULL_ATTENTION_INTERVAL = 4


def write_qwen3_5_mtp(
    folder: Path,
    acceptance: float,
    size: Size = TINY,
    certainty: float = CERTAINTY,
    max_position: int = 32768,
    seed: int = 0,
) -> None:
    """Write model, MTP head and tokenizer, in float32.

    Three layers of four are gated delta nets, the fourth is full attention, as in the released models. Transformers
    reads the target and leaves the weights `mtp.*` alone.

    Args:
        acceptance: share of the tokens after which the head drafts as the target decodes, see `chain.py`.
        certainty: probability of each token's successor.
    """
    from transformers import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    if size.layers % FULL_ATTENTION_INTERVAL:
        raise InputError(f"layers = {size.layers} must be a multiple of {FULL_ATTENTION_INTERVAL} for a Qwen3.5")
    check(size, certainty, acceptance)
    tokenizer = write_tokenizer(folder)
    config = Qwen3_5TextConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        full_attention_interval=FULL_ATTENTION_INTERVAL,
        max_position_embeddings=max_position,
        initializer_range=size.spread,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["Qwen3_5ForCausalLM"],
        mtp_num_hidden_layers=1,
        dtype="float32",
    )
    torch.manual_seed(seed)
    model = Qwen3_5ForCausalLM(config).float()
    factor = speak(model, certainty)
    write(folder, config, model.state_dict() | _mtp(config, acceptance, factor))


def _mtp(config: Any, acceptance: float, factor: float) -> dict[str, torch.Tensor]:
    """One more full-attention layer, behind a projection of (embedding of the next token, hidden state).

    The projection passes the embedding on, to the coordinate of the token that it is read as, and drops the hidden
    state, in which a released head finds the context. `factor` is what the shared output weights are too large by for
    a single layer.
    """
    hidden, heads, kv_heads, width = (
        config.hidden_size,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
    )

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape) * config.initializer_range

    read = torch.zeros(hidden, 2 * hidden)
    read[torch.from_numpy(reading(acceptance)), torch.arange(VOCABULARY)] = 1.0
    layer = {
        "self_attn.q_proj": random(2 * heads * width, hidden),  # queries, and the gates of their outputs
        "self_attn.k_proj": random(kv_heads * width, hidden),
        "self_attn.v_proj": random(kv_heads * width, hidden),
        "self_attn.o_proj": random(hidden, heads * width),
        "mlp.gate_proj": random(config.intermediate_size, hidden),
        "mlp.up_proj": random(config.intermediate_size, hidden),
        "mlp.down_proj": random(hidden, config.intermediate_size),
        # Qwen3.5's norms scale by one plus their weight.
        "self_attn.q_norm": torch.zeros(width),
        "self_attn.k_norm": torch.zeros(width),
        "input_layernorm": torch.zeros(hidden),
        "post_attention_layernorm": torch.zeros(hidden),
    }
    found = {f"mtp.layers.0.{name}.weight": tensor for name, tensor in layer.items()}
    return found | {
        "mtp.fc.weight": read,
        "mtp.pre_fc_norm_embedding.weight": torch.zeros(hidden),
        "mtp.pre_fc_norm_hidden.weight": torch.zeros(hidden),
        "mtp.norm.weight": torch.full((hidden,), 1 / factor - 1),
    }
