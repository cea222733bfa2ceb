"""The agent-loop worker: runs the n responses of a group, tells the coordinator, publishes the group whole."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import ray
from omegaconf import DictConfig
from ray.exceptions import RayActorError
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

from tailsieve_rl.config.settings import read_settings
from tailsieve_rl.rollout.checks import settings_block
from tailsieve_rl.rollout.context import ATTEMPT, LENGTHS, RESPONSE, SESSIONS, ResponseContext, ValidationContext
from tailsieve_rl.rollout.errors import GroupClosed, UnroutableRequest
from tailsieve_rl.rollout.sampling import request_params
from tailsieve_rl.routing.step import Verdict

logger = logging.getLogger(__name__)


_VerlWorker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class

TEACHER_LOGPROBS = "teacher_logprobs"
"""Where verl keeps what the teacher said of a response, until it is published."""


@dataclass(slots=True)
class _Group:
    """A group that this worker runs. `consumed` resolves when its last response finished before the cutoff.

    `lengths` are tokens that its responses are forced to have.
    """

    uid: str
    attempt: int
    lengths: list[int] | None = None
    consumed: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def close(self) -> None:
        """The attempt is over: finished responses that wait for the others end too."""
        if not self.consumed.done():
            self.consumed.set_exception(GroupClosed())
            self.consumed.exception()  # mark as retrieved: there may be nobody waiting


class _PublishError(RuntimeError):
    """A finished response could not be scored or published; generating it again would not help."""


class TailSieveAgentLoopWorker(_VerlWorker):
    """verl's AgentLoopWorkerTQ, with the group as the unit of success."""

    def __init__(self, config: DictConfig, *args: Any, **kwargs: Any):
        super().__init__(config, *args, **kwargs)
        self._settings = read_settings(settings_block(config))
        self._coordinator = self.llm_client._load_balancer
        self._groups: dict[tuple[str, int], _Group] = {}

    async def _run_prompt(
        self, prompt: dict[str, Any], sampling_params: dict[str, Any], trajectory: dict[str, Any], trace: bool = False
    ) -> None:
        if trajectory["validate"]:
            try:
                await super()._run_prompt(prompt, sampling_params, trajectory, trace)
            finally:
                await self._coordinator.validation_settled.remote()
            return
        lengths = prompt.pop(LENGTHS, None)
        group = _Group(
            prompt["uid"], int(prompt.pop(ATTEMPT)), None if lengths is None else [int(tokens) for tokens in lengths]
        )
        self._groups[group.uid, group.attempt] = group
        n = int(prompt.pop(SESSIONS))
        try:
            tasks = [
                asyncio.create_task(self._run_response(group, i, sampling_params, trajectory, trace, prompt))
                for i in range(n)
            ]
            results = await asyncio.gather(*tasks, return_exceptions=True)
            errors = [r for r in results if isinstance(r, BaseException) and not isinstance(r, GroupClosed)]
            if errors:
                logger.error("group %s cannot be published", group.uid, exc_info=errors[0])
                await self._coordinator.step_failed.remote(f"group {group.uid} cannot be published: {errors[0]!r}")
            elif not any(isinstance(r, GroupClosed) for r in results):
                await self._coordinator.group_published.remote(group.uid)
        finally:
            del self._groups[group.uid, group.attempt]

    async def _run_response(
        self,
        group: _Group,
        session: int,
        sampling_params: dict[str, Any],
        trajectory: dict[str, Any],
        trace: bool,
        prompt: dict[str, Any],
    ) -> None:
        """Generate one response and publish it; from scratch again when it fails."""
        retry = 0
        while True:
            length = None if group.lengths is None else group.lengths[session]
            RESPONSE.set(ResponseContext(group.uid, session, group.attempt, retry, length))
            try:
                await self._run_agent_loop(
                    sampling_params, trajectory=trajectory, trace=trace, session_id=session, **prompt
                )
                return
            except GroupClosed:
                group.close()
                raise
            except (_PublishError, UnroutableRequest):
                group.close()
                raise
            except Exception as error:
                again = await self._coordinator.response_failed.remote(
                    group.uid, session, group.attempt, retry, repr(error), isinstance(error, RayActorError)
                )
                if not again:
                    group.close()
                    raise GroupClosed from error
                retry += 1

    async def _run_agent_loop(self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any) -> Any:
        validate = trajectory["validate"]
        if validate:
            RESPONSE.set(ValidationContext(f"{kwargs['uid']}.{kwargs['session_id']}"))
        response = RESPONSE.get()
        params = request_params(
            sampling_params,
            self._settings.sampling,
            step=int(trajectory["step"]),
            row=kwargs,
            session=kwargs["session_id"],
            length=response.length if isinstance(response, ResponseContext) else None,
            validate=validate,
        )
        return await super()._run_agent_loop(params, trajectory, **kwargs)

    async def _agent_loop_postprocess(
        self, output: AgentLoopOutput | list[AgentLoopOutput], validate: bool, **kwargs: Any
    ) -> None:
        """Report a finished response, score it at once, and publish it when its whole group is consumed."""
        if validate:
            return await super()._agent_loop_postprocess(output, validate, **kwargs)
        outputs = output if isinstance(output, list) else [output]
        if not outputs:
            raise RuntimeError("the agent loop returned no output")
        response = RESPONSE.get()
        assert isinstance(response, ResponseContext)
        group = self._groups[response.uid, response.attempt]
        verdict = await self._coordinator.response_finished.remote(
            response.uid,
            response.session,
            response.attempt,
            response.retry,
            sum(len(o.response_ids) for o in outputs),
            _weight_versions(outputs),
            response.first_token_s,
            response.emulated_end_s,
        )
        if verdict is Verdict.REFUSED:
            raise GroupClosed
        if verdict is Verdict.CONSUMED and not group.consumed.done():
            group.consumed.set_result(None)
        try:
            await self._score(outputs, kwargs)
            await asyncio.shield(group.consumed)
            await super()._agent_loop_postprocess(output, validate, **kwargs)
        except GroupClosed:
            raise
        except Exception as error:
            raise _PublishError(f"response {response.session} of group {response.uid}: {error!r}") from error

    async def _score(self, outputs: list[AgentLoopOutput], kwargs: dict[str, Any]) -> None:
        """verl's reward and, in distillation, its teacher's log-probabilities, at once and each tried again by itself.

        verl's own calls, when the group is published, then find both done.
        """
        last = outputs[-1]
        await self._tried_again("a reward", lambda: self._compute_score(outputs, kwargs=kwargs))
        await self._tried_again(
            "a teacher",
            lambda: self._compute_teacher_logprobs(last, last.prompt_ids, last.response_ids, False, kwargs),
        )

    async def _tried_again(self, what: str, attempt: Callable[[], Awaitable[None]]) -> None:
        for retry in range(self._settings.retries + 1):
            try:
                return await attempt()
            except Exception as error:
                if retry == self._settings.retries:
                    raise
                logger.warning("%s failed and is asked again: %r", what, error)

    async def _compute_teacher_logprobs(
        self, output: AgentLoopOutput, prompt_ids: list[int], response_ids: list[int], *args: Any, **kwargs: Any
    ) -> None:
        if TEACHER_LOGPROBS not in output.extra_fields:
            await super()._compute_teacher_logprobs(output, prompt_ids, response_ids, *args, **kwargs)


def _weight_versions(outputs: list[AgentLoopOutput]) -> tuple[int | None, int | None]:
    """First and last weight version over all outputs of a response; None where an engine did not tell."""
    first = [o.extra_fields.get("min_global_steps") for o in outputs]
    last = [o.extra_fields.get("max_global_steps") for o in outputs]
    if None in first or None in last:
        return None, None
    return min(first), max(last)


TailSieveAgentLoopWorkerActor = ray.remote(TailSieveAgentLoopWorker)
