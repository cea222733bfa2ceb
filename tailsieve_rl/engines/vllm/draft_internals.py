"""What of vLLM's inside the draft depth rests on, looked for before it is used."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import vllm
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import core_client
from vllm.v1.engine.core import EngineCore
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from tailsieve_rl.input_error import InputError
from tailsieve_rl.versions import tested

COUNTED = ["spec_decoding_stats", "num_draft_tokens", "num_accepted_tokens", "num_invalid_spec_tokens", "request_id"]
"""Parameters of the method by which vLLM's scheduler counts a draft."""


def check() -> None:
    """Raise InputError, naming what is missing, if the installed vLLM is not like the one we know."""
    missing = missing_internals()
    if missing:
        raise InputError(
            f"vllm {vllm.__version__} cannot change the draft depth of a running engine: it has no "
            f"{', no '.join(missing)} (as vllm {tested('vllm')} has)"
        )


def missing_internals() -> list[str]:
    """In words, what the installed vLLM lacks."""
    found = {
        "Scheduler.schedule that reads dynamic_sd_lookup": _uses(Scheduler, "schedule", "dynamic_sd_lookup"),
        "Scheduler.num_spec_tokens": _uses(Scheduler, "__init__", "num_spec_tokens"),
        "Scheduler.scheduler_config": _uses(Scheduler, "__init__", "scheduler_config"),
        "Scheduler.has_mamba_layers": _uses(Scheduler, "__init__", "has_mamba_layers"),
        "Scheduler.reset_prefix_cache(reset_running_requests)": "reset_running_requests"
        in _parameters(Scheduler, "reset_prefix_cache"),
        "Scheduler.update_from_output that calls make_spec_decoding_stats": _uses(
            Scheduler, "update_from_output", "make_spec_decoding_stats"
        ),
        f"Scheduler.make_spec_decoding_stats({', '.join(COUNTED)})": _parameters(Scheduler, "make_spec_decoding_stats")
        == COUNTED,
        "SchedulerOutput.num_spec_tokens_to_schedule": "num_spec_tokens_to_schedule"
        in {field.name for field in dataclasses.fields(SchedulerOutput)},
        "GPUModelRunner.propose_draft_token_ids that reads num_spec_tokens_to_schedule": _uses(
            GPUModelRunner, "propose_draft_token_ids", "num_spec_tokens_to_schedule"
        ),
        "EngineCore that asks for its scheduler class": _uses(EngineCore, "__init__", "get_scheduler_cls"),
        "AsyncMPClient.call_utility_async": hasattr(core_client.AsyncMPClient, "call_utility_async"),
    }
    return [what for what, there in found.items() if not there]


def _function(owner: type, name: str) -> Callable[..., Any] | None:
    method = getattr(owner, name, None)
    return inspect.unwrap(method) if method is not None else None


def _uses(owner: type, name: str, attribute: str) -> bool:
    """Whether the method's own code mentions an attribute or a method of that name."""
    function = _function(owner, name)
    return function is not None and attribute in function.__code__.co_names


def _parameters(owner: type, name: str) -> list[str]:
    function = _function(owner, name)
    return list(inspect.signature(function).parameters)[1:] if function is not None else []
