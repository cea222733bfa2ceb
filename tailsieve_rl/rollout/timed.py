"""verl's own rollout, measured by our clock and written to our result files: the baseline of every comparison.

`actor_rollout_ref.rollout.agent.agent_loop_manager_class=tailsieve_rl.rollout.timed.TimedAgentLoopManager` with
trainer mode `sync`. Routing, dispatch and publication stay verl's; the sampling parameters under
trainer.v1.tailsieve.sampling reach the engine, so that a paired run samples alike.
"""

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import ray
from omegaconf import DictConfig
from tensordict import TensorDict
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.workers.rollout.llm_server import LLMServerClient

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import BLOCK, Settings, read_settings
from tailsieve_rl.rollout.checks import decoded_by, settings_block, setup_of
from tailsieve_rl.rollout.forced_lengths import column_lengths
from tailsieve_rl.rollout.sampling import request_params
from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus
from tailsieve_rl.routing.plan import Pool
from tailsieve_rl.telemetry.run_files import RunFiles, response_lengths, truncated_fraction

_VerlWorker: Any = AgentLoopWorkerTQ.__ray_metadata__.modified_class

DISPATCH: ContextVar[tuple[str, float] | None] = ContextVar("tailsieve_dispatch", default=None)


@dataclass(frozen=True, slots=True)
class _Finished:
    """A response that finished generating; times by the recorder's clock once it arrives."""

    record: ResponseRecord
    versions: tuple[int | None, int | None]


class Recorder:
    """One actor that stamps the events of verl's rollout and writes the result files.

    Times are wall-clock, of one machine or of synchronised ones: a call's dispatch is stamped where it happens.
    """

    def __init__(self, config: DictConfig):
        self._config, self._setup = config, setup_of(config)
        self._files: RunFiles | None = None
        self._longest = config.data.max_response_length
        self._step, self._last_step = 0, config.trainer.total_training_steps
        self._started = 0.0
        self._finished: list[_Finished] = []
        self._rewards: list[float] = []

    async def begin(self, step: int) -> None:
        """A batch is about to be dispatched: generation time starts."""
        self._files = self._files or self._open(resumed_after=step - 1)
        self._step, self._started = step, time.time()
        self._finished, self._rewards = [], []

    async def finished(
        self,
        uid: str,
        index: int,
        session: int,
        replica: str,
        dispatched: float,
        prompt_tokens: int,
        tokens: int,
        versions: tuple[int | None, int | None],
    ) -> None:
        """A response finished generating."""
        record = ResponseRecord(
            uid=uid,
            prompt_index=index,
            session=session,
            attempt=1,
            pool=Pool.BULK,
            replica=replica,
            status=ResponseStatus.CONSUMED,
            prompt_tokens=prompt_tokens,
            response_tokens=tokens,
            dispatch_s=dispatched - self._started,
            first_token_s=None,
            end_s=time.time() - self._started,
        )
        self._finished.append(_Finished(record, versions))

    async def scored(self, reward: float) -> None:
        """A response has its reward; the last one of the batch completes the step."""
        self._rewards.append(reward)
        if len(self._rewards) == self._setup.groups * self._setup.responses:
            self._write()

    def _open(self, resumed_after: int) -> RunFiles:
        config = self._config
        return RunFiles(
            read_settings(settings_block(config)).output_dir or config.trainer.default_local_dir,
            mode=config.trainer.v1.trainer_mode,
            backend=config.actor_rollout_ref.rollout.name,
            groups=self._setup.groups,
            responses=self._setup.responses,
            model=decoded_by(config),
            resumed_after=resumed_after,
        )

    def _write(self) -> None:
        assert self._files is not None
        records = [f.record for f in self._finished]
        lengths = [r.response_tokens for r in records]
        gen_time_s = max(r.end_s for r in records)
        version = self._step - 1
        self._files.add_step(
            self._step,
            records,
            {
                "q": 0,
                "m": 0,
                "q_next": 0,
                "tail_time_s": 0.0,
                "bulk_time_s": gen_time_s,
                "gen_time_s": gen_time_s,
                "consumed_groups": len({r.uid for r in records}),
                "candidates": 0,
                "aborted_tokens": 0,
                "wasted_fraction": 0.0,
                "retries": 0,
                "reward_mean": sum(self._rewards) / len(self._rewards),
                "off_policy_trajectories": sum(f.versions != (version, version) for f in self._finished),
                "truncated_fraction": truncated_fraction(lengths, self._longest),
                **response_lengths(lengths),
            },
            last=self._last_step in (None, self._step),
        )


class TimedClient(LLMServerClient):
    """verl's client; remembers which replica verl's router chose, and when, at no cost to the call."""

    def __init__(self, recorder: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.recorder = recorder

    async def _acquire_server(self, request_id: str, **extra: Any) -> tuple[str, Any]:
        replica, handle = await super()._acquire_server(request_id, **extra)
        if DISPATCH.get() is None:
            DISPATCH.set((replica, time.time()))
        return replica, handle


class TimedAgentLoopWorker(_VerlWorker):
    """verl's worker; tells the recorder when each response finished and when it was scored."""

    def __init__(self, config: DictConfig, *args: Any, **kwargs: Any):
        super().__init__(config, *args, **kwargs)
        self._settings: Settings = read_settings(settings_block(config))

    async def _run_agent_loop(self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any) -> Any:
        DISPATCH.set(None)
        params = request_params(
            sampling_params,
            self._settings.sampling,
            step=int(trajectory["step"]),
            row=kwargs,
            session=kwargs["session_id"],
            length=self._length(kwargs),
            validate=trajectory["validate"],
        )
        return await super()._run_agent_loop(params, trajectory, **kwargs)

    def _length(self, row: Mapping[str, Any]) -> int | None:
        column = self._settings.replay_lengths
        return None if column is None else column_lengths(row, column)[row["session_id"]]

    async def _agent_loop_postprocess(
        self, output: AgentLoopOutput | list[AgentLoopOutput], validate: bool, **kwargs: Any
    ) -> None:
        outputs = output if isinstance(output, list) else [output]
        recorder = self.llm_client.recorder
        if not validate:
            replica, dispatched = DISPATCH.get() or ("", time.time())
            first, last = outputs[0].extra_fields, outputs[-1].extra_fields
            recorder.finished.remote(
                kwargs["uid"],
                int(kwargs["index"]),
                kwargs["session_id"],
                replica,
                dispatched,
                len(outputs[0].prompt_ids),
                sum(len(o.response_ids) for o in outputs),
                (first.get("min_global_steps"), last.get("max_global_steps")),
            )
        await super()._agent_loop_postprocess(output, validate, **kwargs)
        if not validate:
            recorder.scored.remote(float(outputs[-1].reward_score or 0.0))


class TimedAgentLoopManager(AgentLoopManagerTQ):
    """verl's AgentLoopManagerTQ with the clock started before each dispatch."""

    def __init__(self, config: DictConfig, llm_client: LLMServerClient, *args: Any, **kwargs: Any):
        forced = read_settings(settings_block(config)).replay_workload.name
        if forced is not None:
            right = "verl's own rollout takes lengths from a column of the data only: give replay_lengths"
            raise SettingsError(f"{BLOCK}.replay_workload.name", forced, right)
        self._recorder = ray.remote(Recorder).remote(config)
        client = TimedClient(self._recorder, config=config, load_balancer_handle=llm_client._load_balancer)
        super().__init__(config, client, *args, **kwargs)
        self.agent_loop_workers_class = ray.remote(TimedAgentLoopWorker)

    def generate_sequences(self, prompts: TensorDict) -> None:
        """verl's, after telling the recorder."""
        if "validate" not in prompts:
            ray.get(self._recorder.begin.remote(int(prompts["global_steps"])))
        super().generate_sequences(prompts)
