"""Sampling parameters of one request, beyond those that verl's V1 worker passes on."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tailsieve_rl.config.settings import SamplingSettings


def request_seed(seed: int, step: int, messages: Any, session: int) -> int:
    """A seed of its own for each request, from (seed, step, prompt, session): paired runs sample alike.

    vLLM's `full_determinism` gives all requests of a replica one seed, which correlates them across prompts.

    Args:
        seed: the run's seed.
        step: policy update.
        messages: the prompt, as chat messages.
        session: which of the prompt's n responses.

    Returns:
        31 bits.
    """
    text = json.dumps([seed, step, messages, session], ensure_ascii=False, sort_keys=True, default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1


def request_params(
    base: Mapping[str, Any],
    settings: SamplingSettings,
    *,
    step: int,
    row: Mapping[str, Any],
    session: int,
    length: int | None = None,
    validate: bool = False,
) -> dict[str, Any]:
    """verl's parameters of a request with ours added.

    Args:
        base: what verl's worker passes.
        settings: presence penalty, stop strings and seed.
        step: policy update.
        row: the prompt's fields.
        session: which of its responses.
        length: tokens that the response is forced to have; None: as many as the model wants.
        validate: a validation request: no seed, no forced length.
    """
    params = dict(base)
    if settings.presence_penalty:
        params["presence_penalty"] = settings.presence_penalty
    if settings.stop:
        params["stop"] = list(settings.stop)
        params["include_stop_str_in_output"] = True
    if validate:
        return params
    if settings.seed is not None:
        params["seed"] = request_seed(settings.seed, step, list(row["raw_prompt"]), session)
    if length is not None:
        params.update(max_tokens=length, min_tokens=length, ignore_eos=True)
        params.pop("stop", None)
    return params
