"""Weights that speak the chain: what all architectures share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tailsieve_rl.checkpoints.chain import Tokens, reading, successors, walk
from tailsieve_rl.checkpoints.tokenizer import BYTES, VOCABULARY
from tailsieve_rl.input_error import InputError

CERTAINTY = 0.9
CHAIN_LOGIT = 8.0
"""Of a token's successor, before `set_certainty` scales all."""


@dataclass(frozen=True, slots=True)
class Size:
    """How big a target is.

    Attributes:
        layers: a multiple of 4 for Qwen3.5, where every fourth is full attention.
        hidden: width of the residual stream, of which coordinate i stands for token i: at least VOCABULARY.
        intermediate: width of the MLPs.
        spread: standard deviation of the layers' weights. The larger, the more the context matters.
    """

    layers: int
    hidden: int
    intermediate: int
    spread: float


TINY = Size(layers=4, hidden=288, intermediate=512, spread=0.05)
BENCH = Size(layers=12, hidden=512, intermediate=1536, spread=0.02)
SIZES = {"tiny": TINY, "bench": BENCH}


def embedding(hidden: int, read: Tokens | None = None) -> torch.Tensor:
    """Embeddings of unit variance, (VOCABULARY, hidden): coordinate read[i] for token i; its own by default."""
    rows = torch.zeros(VOCABULARY, hidden)
    columns = torch.arange(VOCABULARY) if read is None else torch.from_numpy(read)
    rows[torch.arange(VOCABULARY), columns] = math.sqrt(hidden)
    return rows


def check(size: Size, certainty: float, acceptance: float) -> None:
    """Raise InputError, naming the value, before anything is made."""
    if size.hidden < VOCABULARY:
        raise InputError(f"hidden = {size.hidden} must be at least {VOCABULARY}, a coordinate for each token")
    if not 1 / VOCABULARY < certainty < 1:
        raise InputError(f"certainty = {certainty:g} must lie between {1 / VOCABULARY:.4f} and 1, both excluded")
    reading(acceptance)


@torch.no_grad()
def speak(model: Any, certainty: float, read: Tokens | None = None) -> float:
    """Give a causal language model of transformers, with random layers, the chain's embeddings and output weights.

    Returns:
        The factor by which the output weights had to grow for `certainty`, since layers dilute the token's coordinate.
    """
    hidden = model.config.hidden_size
    following = torch.from_numpy(successors())
    model.model.embed_tokens.weight.copy_(embedding(hidden, read))
    model.lm_head.weight.zero_()
    model.lm_head.weight[following, torch.arange(VOCABULARY)] = CHAIN_LOGIT / math.sqrt(hidden)

    text = torch.from_numpy(walk(np.arange(0, BYTES, 16), 64))
    logits = model(text).logits.float()
    # What a drafter misreads, it is as certain of: its own reading counts.
    told = following[text if read is None else torch.from_numpy(read)[text]].unsqueeze(-1)
    low, high = 0.0, 100.0
    for _ in range(40):
        factor = (low + high) / 2
        reached = (factor * logits).softmax(-1).gather(-1, told).mean().item()
        low, high = (factor, high) if reached < certainty else (low, factor)
    model.lm_head.weight.mul_(factor)
    return factor


def write(folder: Path, config: Any, weights: dict[str, torch.Tensor]) -> None:
    """One safetensors file and a config.json."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    contiguous = {name: tensor.detach().contiguous() for name, tensor in weights.items()}
    save_file(contiguous, folder / "model.safetensors", metadata={"format": "pt"})
    config.save_pretrained(folder)
