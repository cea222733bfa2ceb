"""Agent loops that meet with accidents, and one with a slow tool."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import ray
from second_look import SecondLookAgentLoop
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop
from verl.experimental.agent_loop.tool_parser import FunctionCall, ToolParser

from tailsieve_rl.rollout.context import RESPONSE, ResponseContext
from tailsieve_rl.rollout.errors import GroupClosed

SLOW_TOOL_S = 6.0


def _first_time(name: str) -> bool:
    """True once in a job, whichever process asks."""
    try:
        Path(os.environ["TAILSIEVE_TEST_DIR"], name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class SaboteurAgentLoop(SecondLookAgentLoop):
    """The example's; one response fails in step 1, and one engine is killed under its requests in step 2."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        step = int(kwargs["global_steps"])
        if step == 1 and _first_time("failed"):
            raise ConnectionError("the tool server is away")
        if step == 2 and _first_time("killed"):
            ray.kill(ray.get_actor("vllm_server_0_0"))
        return await super().run(sampling_params, **kwargs)


@ToolParser.register("always")
class AlwaysCallsTheTool(ToolParser):
    """Reads a tool call out of whatever the model says."""

    async def extract_tool_calls(self, responses_ids: list[int], tools: Any = None) -> tuple[str, list[FunctionCall]]:
        return "", [FunctionCall(name="note", arguments='{"text": "it"}')]


class _Watched:
    """A client whose calls leave a line each in the test's folder: whose they were, and where they ran."""

    def __init__(self, client: Any):
        self._client = client

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        response = RESPONSE.get()
        assert isinstance(response, ResponseContext)
        call = {"uid": response.uid, "session": response.session, "attempt": response.attempt}
        try:
            output = await self._client.generate(*args, **kwargs)
        except GroupClosed:
            self._note({**call, "closed": True})
            raise
        self._note({**call, "closed": False, "replica": output.extra_fields["tailsieve_replica"]})
        return output

    def _note(self, call: dict[str, Any]) -> None:
        with open(Path(os.environ["TAILSIEVE_TEST_DIR"], "calls.jsonl"), "a") as file:
            file.write(json.dumps(call) + "\n")


class SlowToolAgentLoop(ToolAgentLoop):
    """verl's tool loop; at a group's first attempt one prompt in eight waits long for its tool."""

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        self.server_manager = _Watched(self.server_manager)
        return await super().run(*args, **kwargs)

    async def _call_tool(self, *args: Any, **kwargs: Any) -> Any:
        response = RESPONSE.get()
        assert isinstance(response, ResponseContext)
        if int(response.uid.split("-")[1]) % 8 == 0 and response.attempt == 1:
            await asyncio.sleep(SLOW_TOOL_S)
        return await super()._call_tool(*args, **kwargs)
