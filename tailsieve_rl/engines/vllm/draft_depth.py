"""Draft depth of a running engine: how many tokens are drafted for each request in a step, 0 to the engine's largest.

vLLM 0.30 has no setter. Its scheduler looks the depth up by batch size in every step when it has a schedule for that
(`num_speculative_tokens_per_batch_size`); here it has one whose entries are all alike, and may be replaced between two
steps. Drafts that were made before the change are still verified: the depth changes one step later, and what is
generated does not change at all.

`SCHEDULER`, given as vLLM's `scheduler_cls`, is called in the process of the engine's core, wherever that is. Loading
it adds three methods to the core, which a client calls through `engine.engine_core.call_utility_async(NAME, ...)`.
"""

from __future__ import annotations

from typing import Any, Protocol

from vllm.config import VllmConfig
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine.core import EngineCore

from tailsieve_rl.engines.vllm import draft_internals
from tailsieve_rl.routing.draft import Depth, depth_at

SCHEDULER = f"{__name__}.draft_depth_scheduler"
BY_BATCH_SIZE = f"{__name__}.batch_size_scheduler"
"""The same, with the user's schedule in force: it counts, and sets nothing."""

SET, GET, COUNT = "set_draft_depth", "get_draft_depth", "count_drafts"
"""Names of the core's methods."""


class DraftDepth:
    """Mixed into a scheduler: the depth in force, the largest at first, and what became of all drafts so far."""

    scheduler_config: Any
    num_spec_tokens: int
    dynamic_sd_lookup: list[int] | None
    has_mamba_layers: bool
    running: list[Any]

    def __init__(self, *args: Any, keep_schedule: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drafts = self._draft_tokens = self._accepted_tokens = 0
        if keep_schedule and self.dynamic_sd_lookup:
            self._depth: Depth = tuple(self.dynamic_sd_lookup)
        else:
            self._look_up(self.num_spec_tokens)

    def set_draft_depth(self, depth: Depth) -> Depth:
        """From the next step on, a depth for all batches or one by running requests; returns what is in force.

        Raises:
            ValueError: if a depth is not between 0 and the engine's largest.
        """
        depth = depth if isinstance(depth, int) else tuple(depth)
        each = (depth,) if isinstance(depth, int) else depth
        if not each or not 0 <= min(each) <= max(each) <= self.num_spec_tokens:
            raise ValueError(
                f"draft depth {depth} must lie between 0 and {self.num_spec_tokens}, this engine's largest"
            )
        self._look_up(depth)
        return self.draft_depth()

    def draft_depth(self) -> Depth:
        return self._depth

    def keep_states_right(self, depth: Depth) -> None:
        """Before `depth` is set where nothing else sees to it that recurrent layers go on from the right states.

        A step that verifies drafts leaves a state behind each of its tokens, and in vLLM 0.30 a step without drafts
        takes the first, whatever was accepted: if drafts end, what runs is computed anew from its tokens, a prefill.
        On a CPU `cpu_delta_net.py` mends the states themselves.

        Raises:
            ValueError: if a schedule would end drafts between two settings.
        """
        if not self.has_mamba_layers:
            return
        if not isinstance(depth, int) and min(depth) == 0 < max(depth):
            raise ValueError(f"draft depth {depth}: a model with recurrent layers cannot end drafts by the batch size")
        if depth == 0 != self.draft_depth() and self.running:
            super().reset_prefix_cache(reset_running_requests=True)  # type: ignore[misc]

    def count_drafts(self) -> dict[str, int]:
        """Since the start: drafts verified, tokens in them, tokens of them accepted."""
        return {
            "drafts": self._drafts,
            "draft_tokens": self._draft_tokens,
            "accepted_tokens": self._accepted_tokens,
        }

    def make_spec_decoding_stats(
        self,
        spec_decoding_stats: Any,
        num_draft_tokens: int,
        num_accepted_tokens: int,
        num_invalid_spec_tokens: dict[str, int] | None,
        request_id: str,
    ) -> Any:
        """Called by vLLM for each draft that was verified; vLLM itself counts only where it logs statistics."""
        self._drafts += 1
        self._draft_tokens += num_draft_tokens - (num_invalid_spec_tokens or {}).get(request_id, 0)
        self._accepted_tokens += num_accepted_tokens
        return super().make_spec_decoding_stats(  # type: ignore[misc]
            spec_decoding_stats, num_draft_tokens, num_accepted_tokens, num_invalid_spec_tokens, request_id
        )

    def _look_up(self, depth: Depth) -> None:
        self._depth = depth
        if self.num_spec_tokens:  # index 0 is never looked up
            self.dynamic_sd_lookup = [depth_at(depth, b) for b in range(self.scheduler_config.max_num_seqs + 1)]


class DraftDepthScheduler(DraftDepth, Scheduler):
    """vLLM's scheduler."""


class AsyncDraftDepthScheduler(DraftDepth, AsyncScheduler):
    """vLLM's scheduler that prepares the next step while this one runs."""


def draft_depth_scheduler(vllm_config: VllmConfig, **kwargs: Any) -> DraftDepth:
    """Whichever of the two vLLM would have taken: it settles that after `scheduler_cls` has to be given."""
    chosen = AsyncDraftDepthScheduler if vllm_config.scheduler_config.async_scheduling else DraftDepthScheduler
    return chosen(vllm_config=vllm_config, **kwargs)


def batch_size_scheduler(vllm_config: VllmConfig, **kwargs: Any) -> DraftDepth:
    """The same, with the schedule of vLLM's configuration in force."""
    return draft_depth_scheduler(vllm_config, keep_schedule=True, **kwargs)


class _Core(Protocol):
    scheduler: DraftDepth
    vllm_config: VllmConfig


def _add_to_core() -> None:
    def set_draft_depth(core: _Core, depth: Depth) -> Depth:
        if core.vllm_config.device_config.device_type != "cpu":
            core.scheduler.keep_states_right(depth)
        return core.scheduler.set_draft_depth(depth)

    def get_draft_depth(core: _Core) -> Depth:
        return core.scheduler.draft_depth()

    def count_drafts(core: _Core) -> dict[str, int]:
        return core.scheduler.count_drafts()

    for name, method in ((SET, set_draft_depth), (GET, get_draft_depth), (COUNT, count_drafts)):
        setattr(EngineCore, name, method)


draft_internals.check()
_add_to_core()
