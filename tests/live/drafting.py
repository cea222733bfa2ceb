"""Engines that speculate, one for each method, and what transformers says about what they generate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.checkpoints.chain import walk
from tailsieve_rl.checkpoints.dflash import write_dflash
from tailsieve_rl.checkpoints.qwen3 import write_qwen3
from tailsieve_rl.checkpoints.qwen3_5 import write_qwen3_5_mtp
from tailsieve_rl.checkpoints.weights import TINY

LARGEST = 3
ACCEPTANCE = 0.8
CERTAINTY = 0.7
TARGET = replace(TINY, spread=0.06)
"""Layers that matter more than usually: a wrong state of theirs shows in the probabilities."""

ROLLOUT = "actor_rollout_ref.rollout"
DRAFTS = f"++{ROLLOUT}.engine_kwargs.vllm.speculative_config"


@dataclass(frozen=True)
class Method:
    """How an engine drafts.

    Attributes:
        tolerance: by how much its log-probabilities may differ from those of transformers in float32.
        reproducible: whether seeds fix what is sampled. vLLM samples drafts, where it samples them, without seeds.
        exact_depth: whether it drafts as many tokens as it is told, always.
    """

    name: str
    tolerance: float = 1e-3
    reproducible: bool = True
    exact_depth: bool = True

    def write(self, folder: Path) -> tuple[Path, list[str]]:
        """The checkpoints, and the overrides of verl's configuration: the target's path, and the drafts."""
        target, drafter = folder / "target", folder / "drafter"
        settings = {"method": self.name, "num_speculative_tokens": LARGEST}
        if self.name == "mtp":  # verl's own way to say it
            write_qwen3_5_mtp(target, ACCEPTANCE, TARGET, CERTAINTY)
            mtp = {"enable": "true", "enable_rollout": "true", "num_speculative_tokens": LARGEST}
            overrides = [f"actor_rollout_ref.model.mtp.{key}={value}" for key, value in mtp.items()]
            return target, [*overrides, f"{ROLLOUT}.dtype=bfloat16"]
        write_qwen3(target, TARGET, CERTAINTY)
        if self.name == "ngram":
            settings |= {"prompt_lookup_max": 3, "prompt_lookup_min": 1}
        elif self.name == "dflash":
            write_dflash(drafter, target, ACCEPTANCE, LARGEST)
            settings |= {"model": drafter}
        else:
            write_qwen3(drafter, replace(TINY, layers=1), CERTAINTY, ACCEPTANCE)
            settings |= {"model": drafter, "draft_sample_method": "probabilistic"}
        return target, [f"{DRAFTS}.{key}={value}" for key, value in settings.items()]


METHODS = (
    Method("ngram", exact_depth=False),
    Method("draft_model", reproducible=False),
    Method("dflash"),
    Method("mtp", tolerance=0.1),  # bfloat16
)


def prompts(count: int) -> list[list[int]]:
    """Walks along the chain that have come back to their first token, so that n-grams repeat."""
    starts = np.arange(count) * 7 % 256
    return [[*row.tolist(), int(row[0])] for row in walk(starts, 20)]


class Reference:
    """The target in transformers, in float32, as a trainer has it."""

    def __init__(self, path: Path) -> None:
        from transformers import AutoModelForCausalLM

        self._model = AutoModelForCausalLM.from_pretrained(path, dtype="float32").eval()

    def log_probabilities(self, prompts: list[list[int]], responses: list[list[int]]) -> list[NDArray[np.float64]]:
        """For each response, (its length, vocabulary): of each next token, given all before."""
        import torch

        texts = [[*prompt, *response] for prompt, response in zip(prompts, responses, strict=True)]
        longest = max(map(len, texts))
        ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])  # what follows does not matter
        with torch.no_grad():
            found = self._model(ids).logits.double().log_softmax(-1).numpy()
        return [row[len(prompt) - 1 : len(text) - 1] for row, prompt, text in zip(found, prompts, texts, strict=True)]


def of_tokens(log_probabilities: NDArray[np.float64], tokens: list[int]) -> NDArray[np.float64]:
    return log_probabilities[np.arange(len(tokens)), tokens]


def uniform_values(log_probabilities: NDArray[np.float64], tokens: list[int], seed: int) -> NDArray[np.float64]:
    """Independent and uniform on [0, 1], if and only if each token was drawn from its probabilities.

    The tokens' probabilities, in descending order, divide [0, 1]; the value is drawn from the part of the token.
    """
    probabilities = np.exp(log_probabilities)
    order = np.argsort(-probabilities, axis=1)
    ends = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    rank = np.argmax(order == np.asarray(tokens)[:, None], axis=1)
    rows = np.arange(len(tokens))
    share: Any = np.random.default_rng(seed).random(len(tokens))
    return ends[rows, rank] - share * probabilities[rows, tokens]
