"""The job that answers the problems: verl's configuration for it, and its run."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf, open_dict

from tailsieve_rl.config.evaluation import BLOCK, round_groups, rounds, stream
from tailsieve_rl.evaluation.prompts import ProblemSet
from tailsieve_rl.hydra_app import activate_plugin, compose
from tailsieve_rl.input_error import InputError
from tailsieve_rl.telemetry.progress import shown
from tailsieve_rl.train import train

PROMPTS = "prompts.parquet"
"""File of all problems, in the model's folder."""
ROLLOUTS = "rollouts"
"""Folder of a stream's result files, in the model's."""
OF_AN_OPTION = {
    "data.max_response_length": "--max-tokens",
    "trainer.v1.tailsieve.sampling.seed": "--seed",
    f"{BLOCK}.requests": "--requests",
    "actor_rollout_ref.rollout.n": "--samples",
    "actor_rollout_ref.model.path": "MODEL",
    "data.train_batch_size": "--requests",
    "data.train_files": "--data",
    "data.val_files": "--data",
    "trainer.default_local_dir": "--out",
    "trainer.v1.trainer_mode": "the command",
}
"""Keys that are set already, and by what."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What the command line says of responses.

    Attributes:
        max_tokens: longest response.
        seed: each request's own seed is made from it, the prompt and the number of the response.
        requests: most responses of one round.
    """

    max_tokens: int = 16_384
    seed: int = 42
    requests: int = 512

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("requests", 1), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                raise InputError(f"--{name.replace('_', '-')} {value}: must be {least} or more")


def streams_of(sets: Mapping[str, ProblemSet]) -> dict[int, int]:
    """Prompts by the number of their responses."""
    counts: Counter[int] = Counter()
    for found in sets.values():
        counts[found.samples] += len(found.rows)
    return dict(counts)


def job_config(
    model: str,
    sets: Mapping[str, ProblemSet],
    longest_prompt: int,
    sampling: Sampling,
    out: Path,
    overrides: Sequence[str],
) -> DictConfig:
    """The configuration of a job that answers `out`/PROMPTS.

    Args:
        model: its folder, or its name on the hub.
        sets: the problems.
        longest_prompt: tokens.
        sampling: of the responses.
        out: folder of the model.
        overrides: the user's, KEY=VALUE as Hydra takes them.

    Raises:
        InputError: for an override that cannot be applied, or that an option sets.
    """
    given = {text.lstrip("+~").partition("=")[0] for text in overrides}
    for key, option in OF_AN_OPTION.items():
        if key in given:
            raise InputError(f"{key}: is set by {option}")
    activate_plugin()
    on_cpu = os.environ.get("VERL_PLATFORM") == "cpu"
    config = compose("evaluation_cpu" if on_cpu else "evaluation", overrides)
    rounds_of = {n: round_groups(prompts, n, sampling.requests) for n, prompts in streams_of(sets).items()}
    samples = max(rounds_of, key=lambda n: n * rounds_of[n])
    sequence = longest_prompt + sampling.max_tokens
    fixed = {
        "actor_rollout_ref.model.path": model,
        "actor_rollout_ref.rollout.n": samples,
        "data.train_files": str(out / PROMPTS),
        "data.val_files": str(out / PROMPTS),
        "data.train_batch_size": rounds_of[samples],
        "data.max_response_length": sampling.max_tokens,
        "trainer.default_local_dir": str(out),
        "trainer.v1.tailsieve.sampling.seed": sampling.seed,
        BLOCK: {"requests": sampling.requests, "output_dir": str(out / ROLLOUTS)},
    }
    # Room for a round, and as much again for what is left over, on one replica.
    unless_given: dict[str, Any] = {
        "data.max_prompt_length": longest_prompt,
        "actor_rollout_ref.rollout.max_model_len": sequence,
        "actor_rollout_ref.rollout.max_num_seqs": 2 * samples * rounds_of[samples],
    }
    if on_cpu:
        unless_given["actor_rollout_ref.rollout.max_num_batched_tokens"] = max(2048, sequence)
    else:
        unless_given["trainer.n_gpus_per_node"] = _devices()
    with open_dict(config):
        for key, value in {**fixed, **{k: v for k, v in unless_given.items() if k not in given}}.items():
            OmegaConf.update(config, key, value, force_add=True)
    return config


def sampling_of(config: DictConfig) -> dict[str, Any]:
    """What decides how responses are drawn: for the results, and for whether two of them can be compared."""
    rollout, own = config.actor_rollout_ref.rollout, config.trainer.v1.tailsieve.sampling
    return {
        "temperature": rollout.temperature,
        "top_p": rollout.top_p,
        "top_k": rollout.top_k,
        "presence_penalty": own.presence_penalty,
        "stop": list(own.stop),
        "max_tokens": config.data.max_response_length,
        "chat_template": OmegaConf.to_container(config.data.apply_chat_template_kwargs),
    }


def run(config: DictConfig, sets: Mapping[str, ProblemSet], requests: int, out: Path) -> None:
    """Run the job; its files are in `out`/rollouts, in a folder for each number of responses."""
    shutil.rmtree(out / ROLLOUTS, ignore_errors=True)
    steps = {stream(n): rounds(prompts, n, requests) for n, prompts in streams_of(sets).items()}
    # What verl prints on its way goes aside; the results are ours.
    with contextlib.redirect_stdout(sys.stderr), shown("evaluate", steps, out / ROLLOUTS):
        train(config)


def _devices() -> int:
    import torch

    return max(1, torch.accelerator.device_count())
