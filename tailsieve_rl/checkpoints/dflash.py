"""A DFlash drafter of a given acceptance for a made Qwen3 target.

DFlash drafts a block in one pass: behind the last token stand as many mask tokens as are to be drafted, and each finds
by attention what it becomes. Here one head for each place of the block does that, by construction instead of by
training. The queries of head i are turned back by i positions, so that after the rotary embedding the head of mask j
looks at the last token, j positions before it, if i = j, and at nothing otherwise. Its values are the token, and its
part of the output projection is i steps along the chain. The target's hidden states are attended to as a sink, and do
not matter.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tailsieve_rl.checkpoints.chain import Tokens, reading, successors
from tailsieve_rl.checkpoints.tokenizer import BYTES, PAD, SPECIAL, VOCABULARY
from tailsieve_rl.checkpoints.weights import CHAIN_LOGIT
from tailsieve_rl.input_error import InputError

MASK = BYTES + SPECIAL.index(PAD)
HEAD_DIM = BYTES
"""A value holds a byte, a coordinate for each."""

ROPE_THETA = 10_000.0
PLANES = range(0, 16, 2)
"""Pairs of coordinates that the rotary embedding turns fast: by them a head knows its distance."""

STEADY_PLANE = HEAD_DIM // 2 - 1
"""The pair that hardly turns: it holds the threshold."""

SHARPNESS = 60.0
LOUDNESS = 10.0
"""The attention's output against the mask's own embedding."""

MAX_DEPTH = 16


def write_dflash(folder: Path, target: Path, acceptance: float, depth: int = 7) -> None:
    """Write a drafter of blocks of `depth` + 1 for the Qwen3 in the folder `target`, in float32.

    Args:
        acceptance: share of the tokens after which it drafts as the target decodes, see `chain.py`.

    Raises:
        InputError: if `target` is not a Qwen3 of ours.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError(f"depth = {depth} must lie between 1 and {MAX_DEPTH}")
    config, factor = _read(target)
    hidden = config["hidden_size"]
    drafter = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": depth,
        "num_key_value_heads": 1,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "attention_bias": False,
        "layer_types": ["full_attention"],
        "max_position_embeddings": config["max_position_embeddings"],
        "rms_norm_eps": config["rms_norm_eps"],
        "rope_theta": ROPE_THETA,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "block_size": depth + 1,
        "num_target_layers": config["num_hidden_layers"],
        "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, config["num_hidden_layers"] - 1]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    from safetensors.torch import save_file

    weights = {**_attention(hidden, depth, reading(acceptance)), **_rest(hidden, factor)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(drafter, indent=2) + "\n", encoding="utf-8")


def _read(target: Path) -> tuple[dict[str, Any], float]:
    """The target's configuration, and the factor that its output weights grew by."""
    from safetensors import safe_open

    try:
        config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"target = {target}: no checkpoint in this folder ({error})") from None
    if config.get("architectures") != ["Qwen3ForCausalLM"] or config["vocab_size"] != VOCABULARY:
        raise InputError(f"target = {target} must be a made Qwen3, not {config.get('architectures')}")
    with safe_open(target / "model.safetensors", framework="pt") as weights:
        largest = weights.get_tensor("lm_head.weight").max().item()
    return config, largest * math.sqrt(config["hidden_size"]) / CHAIN_LOGIT


def _attention(hidden: int, depth: int, read: Tokens) -> dict[str, torch.Tensor]:
    unit = math.sqrt(hidden)  # a token's coordinate in what comes out of a norm
    speeds = ROPE_THETA ** (-2 * np.arange(HEAD_DIM // 2) / HEAD_DIM)
    half = HEAD_DIM // 2  # pairs are (i, i + half)
    threshold = sum(1 + math.cos(speeds[plane]) for plane in PLANES) / 2  # between distance 0 and distance 1

    key = torch.zeros(HEAD_DIM)
    key[[*PLANES, STEADY_PLANE]] = 1.0
    queries = torch.zeros(depth, HEAD_DIM)
    queries[:, STEADY_PLANE] = -threshold
    for place in range(depth):
        for plane in PLANES:
            angle = -speeds[plane] * (place + 1)
            queries[place, plane], queries[place, plane + half] = math.cos(angle), math.sin(angle)

    q_proj = torch.zeros(depth * HEAD_DIM, hidden)
    q_proj[:, MASK] = queries.flatten() / unit
    k_proj, v_proj = torch.zeros(HEAD_DIM, hidden), torch.zeros(HEAD_DIM, hidden)
    k_proj[:, :BYTES] = key.unsqueeze(1) / unit
    v_proj[:, :BYTES] = torch.eye(BYTES) / unit
    o_proj = torch.zeros(hidden, depth * HEAD_DIM)
    reached, following = np.arange(BYTES), successors()
    for place in range(depth):
        o_proj[read[reached], place * HEAD_DIM + np.arange(BYTES)] = LOUDNESS * unit
        reached = following[reached]
    layer = {
        "q_proj": q_proj,
        "k_proj": k_proj,
        "v_proj": v_proj,
        "o_proj": o_proj,
        "q_norm": torch.full((HEAD_DIM,), SHARPNESS),
        "k_norm": torch.ones(HEAD_DIM),
    }
    return {f"layers.0.self_attn.{name}.weight": tensor for name, tensor in layer.items()}


def _rest(hidden: int, factor: float) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.02

    # Into the coordinates that stand for no token, of which no key and no value is made.
    context = random(hidden, 2 * hidden)
    context[:VOCABULARY] = 0.0
    return {
        "fc.weight": context,
        "hidden_norm.weight": torch.ones(hidden),
        "layers.0.input_layernorm.weight": torch.ones(hidden),
        "layers.0.post_attention_layernorm.weight": torch.ones(hidden),
        "layers.0.mlp.gate_proj.weight": random(hidden, hidden),
        "layers.0.mlp.up_proj.weight": random(hidden, hidden),
        "layers.0.mlp.down_proj.weight": random(hidden, hidden),
        "norm.weight": torch.full((hidden,), 1 / factor),
    }
