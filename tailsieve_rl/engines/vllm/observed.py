"""vLLM's engine as verl's server sees it, with every request observed on its way through.

A wrapper instead of a copy of verl's `generate`: verl builds its result from the `RequestOutput`s that pass here.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from vllm import SamplingParams
from vllm.outputs import CompletionOutput, RequestOutput
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.detokenizer import IncrementalDetokenizer

from tailsieve_rl.engines.vllm import flights, stop


class ObservedEngine:
    """Everything but `generate` is the engine's own."""

    def __init__(self, engine: AsyncLLM, weight_version: Callable[[], int | None]) -> None:
        self._engine = engine
        self._weight_version = weight_version

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def generate(
        self, prompt: Any, sampling_params: SamplingParams, request_id: str, **kwargs: Any
    ) -> AsyncGenerator[RequestOutput, None]:
        """`AsyncLLM.generate` for the current flight: never starts an aborted one, notes times, cuts at a stop."""
        flight = flights.current() or flights.Flight(request_id)
        if flight.aborted:
            yield RequestOutput(request_id, None, None, None, outputs=[], finished=True)
            return
        flight.inside = True
        flight.weight_version = self._weight_version()
        outputs = self._engine.generate(prompt, sampling_params, request_id, **kwargs)
        try:
            async with contextlib.aclosing(outputs):
                async for output in outputs:
                    self._observe(flight, output, sampling_params)
                    yield output
        finally:
            flight.inside = False

    def _observe(self, flight: flights.Flight, output: RequestOutput, params: SamplingParams) -> None:
        if not output.outputs:
            return
        completion = output.outputs[0]
        new_tokens = len(completion.token_ids) - flight.tokens
        if flight.first_token_s is None and new_tokens:
            flight.first_token_s = time.time()
        if output.finished:
            flight.finish_reason = completion.finish_reason
            # A single new token is the one that completed the stop string: nothing can lie after it.
            if isinstance(completion.stop_reason, str) and new_tokens > 1:
                self._cut_after_stop(completion, output.prompt_token_ids, params)
            flight.speculation = speculation_counts(completion)
        flight.tokens = len(completion.token_ids)

    def _cut_after_stop(
        self, completion: CompletionOutput, prompt_token_ids: list[int] | None, params: SamplingParams
    ) -> None:
        assert isinstance(completion.stop_reason, str)
        ids = completion.token_ids
        end = stop.match_end(completion.text, completion.stop_reason, params.include_stop_str_in_output)
        keep = stop.tokens_to_keep(self._text_lengths(prompt_token_ids, list(ids), params), end)
        if keep == len(ids):
            return
        completion.token_ids = ids[:keep]
        if completion.routed_experts is not None:
            completion.routed_experts = completion.routed_experts[: keep - len(ids)]
        if completion.logprobs is not None:
            completion.logprobs = completion.logprobs[:keep]
            completion.cumulative_logprob = sum(
                position[token].logprob
                for position, token in zip(completion.logprobs, completion.token_ids, strict=True)
            )

    def _text_lengths(
        self, prompt_token_ids: list[int] | None, token_ids: list[int], params: SamplingParams
    ) -> Iterator[int]:
        """Decodes with vLLM's own detokenizer, token by token, so that lengths agree with vLLM's text."""
        params = params.clone()
        params.stop = []
        request = EngineCoreRequest(
            request_id="stop",
            prompt_token_ids=prompt_token_ids,
            mm_features=None,
            sampling_params=params,
            pooling_params=None,
            arrival_time=0.0,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )
        detokenizer: Any = IncrementalDetokenizer.from_new_request(self._engine.renderer.tokenizer, request)
        for token_id in token_ids:
            detokenizer.update([token_id], stop_terminated=False)
            yield len(detokenizer.output_text)


def speculation_counts(completion: CompletionOutput) -> dict[str, Any]:
    """Under the names verl's metrics read; verl 0.9.1 looks for them in a field that vLLM 0.30 no longer fills.

    `tailsieve_accepted` counts verifications by accepted drafts.
    """
    metrics = getattr(completion, "spec_decode_metrics", None)  # vLLM 0.24 has none: versions.WITHOUT_SPECULATION
    if metrics is None:
        return {}
    return {
        "spec_num_draft_tokens": metrics.num_draft_tokens,
        "spec_num_accepted_tokens": sum(accepted * count for accepted, count in enumerate(metrics.histogram)),
        "spec_num_verify_steps": sum(metrics.histogram),
        "tailsieve_accepted": tuple(metrics.histogram),
    }
