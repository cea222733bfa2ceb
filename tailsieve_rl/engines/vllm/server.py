"""verl's vLLM server with a verified abort, exact stops, a draft depth that can be set while it runs, and statistics.

CPU engines where there is no accelerator.
"""

from __future__ import annotations

import os
import time
from typing import Any

from verl.workers.rollout.replica import TokenOutput
from verl.workers.rollout.vllm_rollout.vllm_async_server import vLLMHttpServer

from tailsieve_rl.engines.abort_report import AbortReport, nothing_aborted
from tailsieve_rl.engines.vllm import cpu_defaults, draft_arguments, draft_depth
from tailsieve_rl.engines.vllm.abort import DEFAULT_TIMEOUT_S, verified_abort
from tailsieve_rl.engines.vllm.flights import Flight, Flights
from tailsieve_rl.engines.vllm.observed import ObservedEngine
from tailsieve_rl.engines.vllm.speculation_key import ENGINE_KEY
from tailsieve_rl.platforms import cpu
from tailsieve_rl.routing.draft import Depth


class TailSieveVLLMServer(vLLMHttpServer):
    """Becomes a Ray actor in `replica.py`. As in verl, only the server of node rank 0 owns an engine."""

    engine: Any
    global_steps: int | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._flights = Flights()
        self._drafting: draft_arguments.Drafting | None = None
        self._draft_depth: Depth | None = None

    async def run_server(self, args: Any) -> None:
        await super().run_server(args)
        self.engine = ObservedEngine(self.engine, lambda: self.global_steps)
        if self._drafting is None or self._drafting.live:
            self._draft_depth = self._drafting.largest if self._drafting else 0

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, *args: Any, **kwargs: Any
    ) -> TokenOutput:
        """verl's, plus `extra_fields`: when it arrived, its first token, its end, and the weights it started under.

        Aborted: `stop_reason="aborted"` with the tokens so far, none at all if it never entered the engine.
        """
        with self._flights.open(request_id) as flight:
            if flight.aborted:
                output = TokenOutput(
                    token_ids=[], stop_reason="aborted", extra_fields={"global_steps": self.global_steps}
                )
            else:
                output = await super().generate(prompt_ids, sampling_params, request_id, *args, **kwargs)
        output.extra_fields.update(self._observations(flight))
        return output

    def _observations(self, flight: Flight) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "tailsieve_replica": self.replica_rank,
            "tailsieve_arrival_s": flight.arrival_s,
            "tailsieve_first_token_s": flight.first_token_s,
            "tailsieve_end_s": flight.end_s,
            **flight.speculation,
        }
        if flight.weight_version is not None:
            # verl's client would take the version at the end for both; it keeps a minimum that is already there.
            fields["min_global_steps"] = flight.weight_version
        return fields

    async def abort_requests(self, request_ids: list[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> AbortReport:
        """Abort by the ids given to `generate`; returns when they are verified to be out of the engine.

        An id that has not arrived yet is refused when it does.
        """
        if self.node_rank != 0:
            return nothing_aborted()
        return await verified_abort(self.engine, self._flights, request_ids, timeout_s)

    async def abort_request(self, request_id: str, reset_prefix_cache: bool = True) -> dict[str, Any]:
        """verl's single abort, mended: verl 0.9.1 looks the id up among vLLM 0.30's internal ids, where it never is.

        Here too, an id that is not found is refused if it arrives later.
        """
        report = await self.abort_requests([request_id])
        if request_id in report["remaining"]:
            return {"aborted": False, "request_id": request_id, "error": "still in the engine"}
        if request_id not in report["aborted"]:
            return {"aborted": False, "request_id": request_id, "error": f"Request {request_id} not found"}
        if reset_prefix_cache:
            await self.clear_kv_cache()
        return {"aborted": True, "request_id": request_id}

    async def set_draft_depth(self, depth: Depth) -> Depth:
        """Draft `depth` tokens a step for every request, from the next step on; 0 to draft none.

        A schedule, one depth for each number of running requests, is looked up by vLLM in every step.

        Returns:
            The depth in force, read back from the engine.

        Raises:
            ValueError: if the engine cannot have this depth; nothing has changed.
        """
        if self._draft_depth is None:
            raise ValueError("the depth is not ours to set: this engine has a schedule or a scheduler of the user's")
        largest = self._drafting.largest if self._drafting else 0
        each = (depth,) if isinstance(depth, int) else depth
        if not 0 <= min(each) <= max(each) <= largest:
            raise ValueError(f"draft depth {depth} must lie between 0 and {largest}, this engine's largest")
        if self._drafting is None or self.node_rank != 0:  # only node 0's server owns an engine
            return depth
        core = self.engine.engine_core
        await core.call_utility_async(draft_depth.SET, depth)
        found = await core.call_utility_async(draft_depth.GET)
        self._draft_depth = found if isinstance(found, int) else tuple(found)
        if self._draft_depth != depth:
            raise RuntimeError(f"draft depth {depth} was set, but the engine says {self._draft_depth}")
        return depth

    async def speculation_stats(self) -> dict[str, Any]:
        """The depth in force (None: it varies), the largest, and the engine's counts since it started (None: unknown).

        `drafts` were verified, of `draft_tokens` in all, of which `accepted_tokens` were accepted: a step that verified
        drafts gave 1 + accepted_tokens / drafts tokens a request on the average.
        """
        counts: dict[str, int | None] = dict.fromkeys(("drafts", "draft_tokens", "accepted_tokens"), 0)
        if self._drafting is not None and not self._drafting.counted:
            counts = dict.fromkeys(counts)
        elif self._drafting is not None and self.node_rank == 0:
            counts = await self.engine.engine_core.call_utility_async(draft_depth.COUNT)
        return {
            "replica": self.replica_rank,
            "draft_depth": self._draft_depth,
            "largest_draft_depth": self._drafting.largest if self._drafting else 0,
            **counts,
        }

    async def stats(self) -> dict[str, Any]:
        """Requests by where they are: decoding, in the engine before their first token, held before the engine."""
        states = self.engine.output_processor.request_states.values() if self.node_rank == 0 else ()
        running = sum(not state.is_prefilling for state in states)
        return {
            "replica": self.replica_rank,
            "running": running,
            "waiting": len(states) - running,
            "held": self._flights.held_outside(),
            "global_steps": self.global_steps,
            "draft_depth": self._draft_depth,
        }

    async def ping(self) -> dict[str, Any]:
        """Answers at once, however busy the engine is."""
        alive = self.node_rank != 0 or not self.engine.errored
        return {"replica": self.replica_rank, "alive": alive, "pid": os.getpid(), "time_s": time.time()}

    def _get_worker_extension_cls(self) -> str:
        if cpu.active():
            return "tailsieve_rl.engines.vllm.worker.CpuWorkerExtension"
        if self._drafting is not None:
            return "tailsieve_rl.engines.vllm.drafter_sync.DraftingWorkerExtension"
        return super()._get_worker_extension_cls()

    def _preprocess_engine_kwargs(self, engine_kwargs: dict[str, Any]) -> None:
        super()._preprocess_engine_kwargs(engine_kwargs)
        own = engine_kwargs.pop(ENGINE_KEY, None)
        if own:
            pool = "tail" if self.replica_rank < own["tail_replicas"] else "bulk"
            engine_kwargs |= {"speculative_config": own[pool], draft_arguments.DEPTHS: own["depths"]}
        text = self.model_config.hf_config.get_text_config()
        longest_context = getattr(text, "max_position_embeddings", None)
        self._drafting = draft_arguments.fill(engine_kwargs, self.config, longest_context, cpu.active())
        if cpu.active():
            cpu_defaults.fill(engine_kwargs, self.config, self.model_config.hf_config)

    def _resolve_sleep_level(self) -> int:
        """verl's level 2 discards all weights, and its next update brings back the target's only."""
        if self._drafting is not None and self._drafting.has_weights:
            return 1
        return super()._resolve_sleep_level()
