"""Engine arguments that speculation needs where the user gave none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verl.workers.rollout.vllm_rollout.utils import build_mtp_speculative_config

from tailsieve_rl.engines.vllm import draft_depth, draft_graphs
from tailsieve_rl.input_error import InputError
from tailsieve_rl.versions import no_speculation

DEPTHS = "draft_depths"
"""Key of ours among the engine arguments: the depths that will be set, for CUDA graphs; all if it is not given."""

SCHEDULE = "num_speculative_tokens_per_batch_size"
WITHOUT_WEIGHTS = ("ngram", "ngram_gpu", "suffix")


@dataclass(frozen=True, slots=True)
class Drafting:
    """How an engine speculates.

    Attributes:
        largest: tokens drafted at once, at most.
        live: whether the depth can be set: not where the user gave a schedule or a scheduler, for it is theirs.
        counted: whether drafts are counted: not where the user gave a scheduler.
        has_weights: of its own, which an update of the target's does not bring.
    """

    largest: int
    live: bool
    counted: bool
    has_weights: bool


def speculative_config(engine_kwargs: Mapping[str, Any], rollout: Any) -> dict[str, Any] | None:
    """vLLM's, as verl will make it of `engine_kwargs.vllm.speculative_config` and `rollout.mtp`; None for none."""
    given = engine_kwargs.get("speculative_config")
    if isinstance(given, str):
        given = json.loads(given)
    mtp = rollout.mtp
    if mtp is not None and mtp.enable and mtp.enable_rollout:
        return dict(build_mtp_speculative_config(mtp.method, mtp.num_speculative_tokens, given))
    return dict(given) if given else None


def fill(engine_kwargs: dict[str, Any], rollout: Any, longest_context: int | None, on_cpu: bool) -> Drafting | None:
    """Add to `engine_kwargs`, given verl's rollout configuration; None if the engine does not speculate.

    Args:
        longest_context: tokens that the model has positions for, if known.
    """
    depths = engine_kwargs.pop(DEPTHS, None)
    config = speculative_config(engine_kwargs, rollout)
    if config is None:
        return None
    if why := no_speculation():
        raise InputError(f"speculation is {why}")
    largest = int(config.get("num_speculative_tokens") or 0)
    if largest < 1:
        raise InputError("speculative_config.num_speculative_tokens must be given, and be 1 or more")
    engine_kwargs.setdefault("per_request_spec_decode_metrics", "summary")
    _make_room(engine_kwargs, rollout, largest, longest_context)
    counted = "scheduler_cls" not in engine_kwargs
    live = counted and SCHEDULE not in config
    engine_kwargs.setdefault("scheduler_cls", draft_depth.SCHEDULER if live else draft_depth.BY_BATCH_SIZE)
    if live and not on_cpu:
        in_use = {largest, *(range(largest) if depths is None else depths)}
        _graphs(engine_kwargs, rollout, config, in_use)
    return Drafting(largest, live, counted, has_weights=config.get("method") not in WITHOUT_WEIGHTS)


def _make_room(engine_kwargs: dict[str, Any], rollout: Any, largest: int, longest_context: int | None) -> None:
    """For drafts beyond a response's end, and for those of all requests in one step.

    vLLM drafts nothing for the whole batch while one request has less than the depth left of `max_model_len`, and
    drafts less for requests that do not fit a step. verl ends responses by its own `max_model_len`, which stays.
    """
    length = rollout.max_model_len + largest + 1
    if longest_context is not None and length <= longest_context:
        engine_kwargs.setdefault("max_model_len", length)
    length = engine_kwargs.get("max_model_len", rollout.max_model_len)
    # A request's token, its drafts, and as many places as a drafter may want besides (DFlash's masks).
    tokens = max(rollout.max_num_seqs * (1 + 2 * largest), rollout.max_num_batched_tokens)
    if rollout.max_num_batched_tokens >= rollout.max_model_len:  # a prompt is not cut: this must stay so
        tokens = max(tokens, length)
    engine_kwargs.setdefault("max_num_batched_tokens", tokens)


def _graphs(engine_kwargs: dict[str, Any], rollout: Any, config: dict[str, Any], depths: set[int]) -> None:
    if any(depth < 0 or depth > config["num_speculative_tokens"] for depth in depths):
        raise InputError(
            f"{DEPTHS} = {sorted(depths)} must lie between 0 and num_speculative_tokens = "
            f"{config['num_speculative_tokens']}"
        )
    given = engine_kwargs.get("speculative_config") or {}
    given = json.loads(given) if isinstance(given, str) else dict(given)
    engine_kwargs["speculative_config"] = {**given, SCHEDULE: draft_graphs.schedule(depths, rollout.max_num_seqs)}
    compilation = engine_kwargs.get("compilation_config") or {}
    compilation = json.loads(compilation) if isinstance(compilation, str) else dict(compilation)
    if not (rollout.enforce_eager or rollout.cudagraph_capture_sizes or "cudagraph_capture_sizes" in compilation):
        sizes = draft_graphs.capture_sizes(depths, rollout.max_num_seqs)
        engine_kwargs["compilation_config"] = {**compilation, "cudagraph_capture_sizes": sizes}
