"""The client that agent loops generate with: routed by group, and an abort ends the response."""

from typing import Any

import ray
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from tailsieve_rl.rollout.batched_calls import BatchedCalls
from tailsieve_rl.rollout.context import CALL, RESPONSE, ResponseContext
from tailsieve_rl.rollout.errors import GroupClosed, UnroutableRequest

# What our server adds to a finished call: times of its own clock, seconds.
ARRIVAL, FIRST_TOKEN = "tailsieve_arrival_s", "tailsieve_first_token_s"
DRAFTS = (("spec_num_draft_tokens", 0), ("tailsieve_accepted", ()))
"""What it adds with speculation (and what it is without): drafts, and verifications by accepted ones."""
EMULATED_END = "tailsieve_emulated_end_s"
"""What an emulated server adds: when the call ended, in its seconds since the step's start."""


class TailSieveClient(LLMServerClient):
    """verl's LLMServerClient, routed by group and never resuming.

    An aborted request raises GroupClosed, so that no agent loop can go on with a truncated response.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._handles: dict[str, ray.actor.ActorHandle] = {}
        self._calls = BatchedCalls(self._load_balancer)

    async def generate(self, request_id: str, **kwargs: Any) -> TokenOutput:
        """Generate one turn on the replica of the response that this task runs for.

        Raises:
            UnroutableRequest: if the calling task runs for no response.
            GroupClosed: if the group's attempt is over.
        """
        response = RESPONSE.get()
        if response is None:
            raise UnroutableRequest(
                "generate() was called outside the task of a response, so its group is unknown. An agent loop must "
                "call server_manager.generate from the task that runs it or from tasks that it creates"
            )
        engine_id = response.next_engine_id()
        token = CALL.set((engine_id, len(kwargs["prompt_ids"])))
        ended: tuple[Any, ...] = (0,)
        try:
            output = await super().generate(request_id, **kwargs)
            ended = (len(output.token_ids), *(output.extra_fields.get(key, default) for key, default in DRAFTS))
        finally:
            CALL.reset(token)
            self._calls.release(engine_id, *ended)
        if output.stop_reason in ("aborted", "abort"):
            raise GroupClosed
        seen = output.extra_fields
        if isinstance(response, ResponseContext):
            if response.first_token_s is None and seen.get(FIRST_TOKEN) is not None:
                response.first_token_s = seen[FIRST_TOKEN] - seen[ARRIVAL]
            response.emulated_end_s = seen.get(EMULATED_END)
        return output

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, ray.actor.ActorHandle]:
        response = RESPONSE.get()
        call = CALL.get()
        assert call is not None  # only generate() acquires
        engine_id, prompt_tokens = call
        if isinstance(response, ResponseContext):
            replica = await self._calls.acquire(
                engine_id,
                response.uid,
                response.session,
                response.attempt,
                response.retry,
                prompt_tokens,
            )
        else:
            replica = await self._load_balancer.acquire_validation.remote(engine_id)
        if replica is None:
            raise GroupClosed
        if replica not in self._handles:
            self._handles = await self._load_balancer.handles.remote()
        return replica, self._handles[replica]

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        """Nothing: generate() releases, since the coordinator must hear how many tokens came back."""

    def _vllm_request_id(self, request_id: str) -> str:
        call = CALL.get()
        return call[0] if call is not None else super()._vllm_request_id(request_id)
