"""A Qwen3 of the chain: a target, or a draft model of a given acceptance."""

from __future__ import annotations

from pathlib import Path

import torch

from tailsieve_rl.checkpoints.chain import reading
from tailsieve_rl.checkpoints.tokenizer import write_tokenizer
from tailsieve_rl.checkpoints.weights import CERTAINTY, TINY, Size, check, speak, write


def write_qwen3(
    folder: Path,
    size: Size = TINY,
    certainty: float = CERTAINTY,
    acceptance: float = 1.0,
    max_position: int = 32768,
    seed: int = 0,
) -> None:
    """Write model and tokenizer, in float32.

    Args:
        certainty: probability of each token's successor.
        acceptance: share of the tokens that it reads right. 1 for a target; a draft model is a small one of less.
        seed: of the layers' weights. Two models of one size with different seeds differ by what the context does.
    """
    from transformers import Qwen3Config, Qwen3ForCausalLM

    check(size, certainty, acceptance)
    tokenizer = write_tokenizer(folder)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=max_position,
        initializer_range=size.spread,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        architectures=["Qwen3ForCausalLM"],
        dtype="float32",
    )
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(config).float()
    speak(model, certainty, reading(acceptance))
    write(folder, config, model.state_dict())
