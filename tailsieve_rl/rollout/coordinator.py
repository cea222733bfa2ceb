"""The coordinator: one Ray actor that is verl's router and owns the running step.

The life of a group, as the coordinator sees it:

| state     | enters by                  | leaves by                                                               |
|-----------|----------------------------|-------------------------------------------------------------------------|
| running   | begin_step                 | its n responses finish: consumed                                        |
|           |                            | it is fresh and the cutoff falls: candidate, its calls are aborted      |
|           |                            | a response fails: generated again, `retries` times; then the step fails |
|           |                            | its replica dies: the same, on another replica                          |
| consumed  | its last response finished | its worker has put all of it into the queue: published                  |
| candidate | the cutoff                 | its aborts are verified, its calls have returned: next step's tail      |
| published | group_published            | all N are, and nothing is in flight: the step is done                   |

Everything happens on an event: an acquire, a finish, a release, a publication. The only timer is the watchdog.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.rollout.running import StepRun
from tailsieve_rl.rollout.step_clock import StepClock
from tailsieve_rl.routing.draft import Depth
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.plan import Pool, StepPlan
from tailsieve_rl.routing.policies import Lengths, Placement, RoutingPolicy
from tailsieve_rl.routing.step import Verdict

logger = logging.getLogger(__name__)

ABORT_TIMEOUT_S = 30.0


class Coordinator:
    """verl's RequestLoadBalancer (verl/workers/rollout/router.py), made through `router_config_path`.

    Args:
        servers: replica name (its address) to actor handle.
        yaml_config: the router file; nothing is read from it, settings arrive by `configure`.
    """

    def __init__(self, servers: Mapping[str, Any], yaml_config: Mapping[str, Any]):
        self._servers = dict(servers)
        self._dead: set[str] = set()
        self._load: Counter[str] = Counter()
        self._replica_of_call: dict[str, str] = {}
        self._policy: RoutingPolicy | None = None
        self._placement: Placement | None = None
        self._retries, self._watchdog_s = 0, 0.0
        self._emulated: float | None = None
        self._drafts = False
        self._depths: dict[str, Depth] = {}
        self._run: StepRun | None = None
        self._done = asyncio.Event()
        self._failure: StepFailed | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._aborting: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._validated = 0
        self._validation_event = asyncio.Event()

    # ------------------------------------------------------------------ the trainer's side

    async def configure(
        self,
        policy: RoutingPolicy,
        retries: int,
        watchdog_s: float,
        emulated: float | None = None,
        drafts: bool = False,
    ) -> list[str]:
        """Tell the policy and the limits.

        Args:
            policy: places the responses.
            retries: of a failed response.
            watchdog_s: seconds without an event after which a step is stuck.
            emulated: the time scale of emulated engines, in whose seconds all times then are; None: real engines.
            drafts: whether engines draft, at depths that plans give.

        Returns:
            The replicas' names, in the order that pools use.
        """
        self._policy, self._retries, self._watchdog_s = policy, retries, watchdog_s
        self._emulated, self._drafts = emulated, drafts
        return self._alive()

    async def alive(self) -> list[str]:
        """Names of the replicas that have not died."""
        return self._alive()

    async def begin_step(
        self, plan: StepPlan, prompt_index: Mapping[str, int], elapsed_s: float, lengths: Lengths | None = None
    ) -> int:
        """Take over a planned step; its requests may arrive from now on.

        Args:
            plan: the step.
            prompt_index: row in the data set of each group's prompt.
            elapsed_s: seconds that already count as generation time (planning).
            lengths: of every response, where the run replays lengths: what an oracle is told.

        Returns:
            The weight version that every consumed token must carry.

        Raises:
            StepFailed: if calls of an earlier step are still in flight, replicas differ in weights, or an engine does
                not take its draft depth.
        """
        started = time.monotonic() - elapsed_s
        if self._replica_of_call:
            raise StepFailed(f"step {plan.step} began with {len(self._replica_of_call)} calls in flight")
        stats = await self._ask_all("stats")
        versions = {name: stat["global_steps"] for name, stat in zip(self._alive(), stats, strict=True)}
        if len(set(versions.values())) != 1:
            raise StepFailed(f"step {plan.step}: replicas carry different weight versions: {versions}")
        version = next(iter(versions.values()))
        assert self._policy is not None
        self._placement = self._policy.placement(plan, lengths)
        clock = StepClock(started)
        if self._emulated is not None:
            clock = StepClock(None, self._emulated)
            await self._ask_all("hold")
        set_depth_s = await self._set_depths(plan) if self._drafts else 0.0
        self._run = StepRun(plan, dict(prompt_index), version, clock, set_depth_s=set_depth_s)
        self._failure, self._aborting, self._starting = None, None, None
        self._done.clear()
        self._touch()
        return version

    async def wait_step(self) -> StepOutcome:
        """Wait until the step's N groups are published and no call of it is in flight.

        Raises:
            StepFailed: with the cause, if the step cannot be completed.
        """
        await self._done.wait()
        self._stop_watchdog()
        if self._failure is not None:
            raise self._failure
        assert self._run is not None
        return self._run.outcome()

    async def step_extras(self) -> dict[str, float]:
        """Measurements of the finished step that are not part of its outcome (seconds, counts)."""
        assert self._run is not None
        return self._run.extras()

    async def wait_validation(self, groups: int) -> None:
        """Wait until so many validation prompts have settled since the last call."""
        while self._validated < groups:
            self._validation_event.clear()
            await self._validation_event.wait()
        self._validated -= groups

    async def clear_caches(self) -> None:
        """Drop every engine's KV cache (between the warm-up rollout and the first step)."""
        await self._ask_all("clear_kv_cache")

    # ------------------------------------------------------------------ the agent loops' side

    async def acquire(
        self, call: str, uid: str, session: int, attempt: int, retry: int, prompt_tokens: int
    ) -> str | None:
        """Choose the replica of one generate call; all turns of a response stay on one replica.

        Returns:
            Its name, or None if the attempt is over: the caller must end the response.
        """
        run = self._run
        if run is None or not run.accepts(uid, attempt):
            if run is not None:
                run.refused += 1
            return None
        self._touch()
        task = run.plan_task(uid)
        replica = run.replica_of(uid, session, retry)
        if replica is None or replica in self._dead:
            pool = [name for name in run.plan.replicas_of(task.pool) if name not in self._dead]
            if not pool:
                pool = self._alive()
                logger.warning("step %d: the %s pool has no live replica, using all", run.plan.step, task.pool)
                run.pool_fallbacks += 1
            if not pool:
                self._fail(f"no replica is alive for group {uid}")
                return None
            assert self._placement is not None
            replica = self._placement.place(task, session, run.plan.responses, pool, self._load)
        run.call_started(call, uid, session, retry, replica, prompt_tokens)
        self._load[replica] += 1
        self._replica_of_call[call] = replica
        if run.clock.started is None and run.all_dispatched and self._starting is None:
            self._starting = asyncio.create_task(self._start_emulated(run))
        return replica

    async def acquire_many(self, calls: Sequence[tuple[Any, ...]]) -> list[str | None]:
        """`acquire` for calls that came in one message, with its arguments each."""
        return [await self.acquire(*call) for call in calls]

    async def release_many(self, calls: Sequence[tuple[Any, ...]]) -> None:
        """`release` for calls that came in one message, with its arguments each."""
        for call in calls:
            await self.release(*call)

    async def release(self, call: str, tokens: int, drafted_tokens: int = 0, accepted: tuple[int, ...] = ()) -> None:
        """A generate call returned, with so many tokens, however it ended; drafts as in ResponseRecord."""
        replica = self._replica_of_call.pop(call, None)
        if replica is None:
            return
        self._load[replica] -= 1
        if self._run is not None:
            self._run.call_ended(call, tokens, drafted_tokens, accepted)
            self._touch()
            self._finish_if_complete()

    async def response_finished(
        self,
        uid: str,
        session: int,
        attempt: int,
        retry: int,
        tokens: int,
        versions: tuple[int | None, int | None],
        first_token_s: float | None,
        emulated_end_s: float | None = None,
    ) -> Verdict:
        """A response finished generating (its reward has not been computed yet).

        Args:
            uid: its group.
            session: which of the group's responses.
            attempt: the attempt it was generated in.
            retry: which try within the attempt; a try that was given up is refused.
            tokens: its length.
            versions: first and last weight version that its tokens were sampled under.
            first_token_s: seconds from dispatch to the first token, if known.
            emulated_end_s: when an emulated engine finished it, in its seconds since the step's start.
        """
        run = self._run
        if run is None or not run.accepts(uid, attempt) or run.replica_of(uid, session, retry) is None:
            if run is not None:
                run.refused += 1
            return Verdict.REFUSED
        if versions != (run.version, run.version):
            self._fail(
                f"response {session} of group {uid} was sampled under weight versions {versions}, "
                f"the step runs under {run.version}"
            )
            return Verdict.REFUSED
        self._touch()
        had_cutoff = run.state.cutoff_s is not None
        verdict = run.response_finished(uid, session, attempt, tokens, first_token_s, emulated_end_s)
        if run.state.cutoff_s is not None and not had_cutoff:
            self._aborting = asyncio.create_task(self._abort_candidates(run))
        return verdict

    async def response_failed(self, uid: str, session: int, attempt: int, retry: int, cause: str, died: bool) -> bool:
        """A response failed.

        Args:
            uid: its group.
            session: which of the group's responses.
            attempt: the group's attempt.
            retry: 0 for the first try.
            cause: what happened.
            died: whether its engine is gone.

        Returns:
            True: generate it again from scratch. False: the attempt is over, or the step has failed.
        """
        run = self._run
        if run is None or not run.accepts(uid, attempt):
            return False
        replica = run.replica_of(uid, session, retry)
        if died and replica is not None and replica not in self._dead:
            self._dead.add(replica)
            logger.error("replica %s died in step %d; its responses are generated elsewhere", replica, run.plan.step)
        run.response_retried(uid, session)
        if retry >= self._retries:
            self._fail(f"response {session} of group {uid} failed {retry + 1} times; the last cause was: {cause}")
            return False
        logger.warning("step %d: response %d of group %s is generated again: %s", run.plan.step, session, uid, cause)
        self._touch()
        return True

    async def group_published(self, uid: str) -> None:
        """All n responses of a consumed group are in the queue, rewards included."""
        if self._run is not None:
            self._run.published.add(uid)
            self._touch()
            self._finish_if_complete()

    async def step_failed(self, cause: str) -> None:
        """Something happened in a worker that no retry mends."""
        self._fail(cause)

    async def validation_settled(self) -> None:
        """One validation prompt has all its responses, or has failed as verl allows."""
        self._validated += 1
        self._validation_event.set()

    async def acquire_validation(self, call: str) -> str:
        """Choose a replica for a validation call: all replicas, fewest calls in flight."""
        replica = min(self._alive(), key=lambda name: self._load[name])
        self._load[replica] += 1
        self._replica_of_call[call] = replica
        return replica

    async def handles(self) -> dict[str, Any]:
        """Every replica's actor handle, for a client to keep: unpacking one takes milliseconds."""
        return self._servers

    # ------------------------------------------------------------------ inside

    def _alive(self) -> list[str]:
        return [name for name in self._servers if name not in self._dead]

    async def _ask_all(self, method: str) -> list[Any]:
        handles = [self._servers[name] for name in self._alive()]
        return list(await asyncio.gather(*(getattr(handle, method).remote() for handle in handles)))

    async def _set_depths(self, plan: StepPlan) -> float:
        """Have every engine draft as deep as its pool should, and see that it does. Returns the seconds it took."""
        started = time.monotonic()
        wanted = {
            name: plan.depth_of(Pool.TAIL if name in plan.tail_replicas else Pool.BULK)
            for name in (*plan.tail_replicas, *plan.bulk_replicas)
        }
        changed = [name for name, depth in wanted.items() if self._depths.get(name) != depth]
        calls = (self._servers[name].set_draft_depth.remote(wanted[name]) for name in changed)
        for name, depth in zip(changed, await asyncio.gather(*calls), strict=True):
            if depth != wanted[name]:
                raise StepFailed(f"step {plan.step}: replica {name} drafts {depth} tokens, not {wanted[name]} as told")
            self._depths[name] = depth
        return time.monotonic() - started

    async def _start_emulated(self, run: StepRun) -> None:
        """Let emulated engines begin together once each holds all its calls: sending them took none of their time."""
        try:
            calls = Counter(self._replica_of_call.values())
            names = self._alive()
            await asyncio.gather(*(self._servers[name].arrived.remote(calls[name]) for name in names))
            await asyncio.gather(*(self._servers[name].start.remote() for name in names))
            run.clock.start()
        except Exception as error:
            self._fail(f"starting the emulated engines failed: {error!r}")

    async def _abort_candidates(self, run: StepRun) -> None:
        """Abort the candidates' calls by id, engine by engine, and see that none is left."""
        try:
            calls: dict[str, list[str]] = {}
            for call in run.calls_of_candidates():
                calls.setdefault(self._replica_of_call[call], []).append(call)
            started = time.monotonic()
            answers = await asyncio.gather(
                *(
                    self._servers[replica].abort_requests.remote(ids, timeout_s=ABORT_TIMEOUT_S)
                    for replica, ids in calls.items()
                    if replica not in self._dead
                )
            )
            left = [call for answer in answers for call in answer["remaining"]]
            if left:
                self._fail(f"{len(left)} aborted requests are still in an engine after {ABORT_TIMEOUT_S} s: {left[:4]}")
            run.abort_s = time.monotonic() - started
            run.aborts_verified = True
            self._finish_if_complete()
        except Exception as error:
            self._fail(f"aborting the candidates failed: {error!r}")

    def _finish_if_complete(self) -> None:
        if self._run is not None and self._run.complete and not self._replica_of_call:
            self._done.set()

    def _fail(self, cause: str) -> None:
        if self._failure is None:
            step = self._run.plan.step if self._run is not None else None
            self._failure = StepFailed(f"step {step}: {cause}")
            logger.error("%s", self._failure)
        if self._run is not None:
            self._run.failed = True
        self._done.set()

    def _touch(self) -> None:
        """Something happened: the watchdog starts again."""
        self._stop_watchdog()
        if self._watchdog_s and not self._done.is_set():
            self._watchdog = asyncio.get_running_loop().call_later(self._watchdog_s, self._stuck)

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    def _stuck(self) -> None:
        if not self._done.is_set():
            state = self._run.describe() if self._run is not None else "no step"
            self._fail(f"nothing happened for {self._watchdog_s} s; {state}; in flight: {dict(self._load)}")

    # ------------------------------------------------------------------ the rest of verl's router protocol

    def require_acquire_fields(self) -> list[str]:
        return []

    def require_release_fields(self) -> list[str]:
        return []

    def acquire_server(self, request_id: str) -> tuple[str, Any]:
        raise StepFailed(f"request {request_id} came through a client other than TailSieveClient: it has no group")

    def release_server(self, server_id: str, request_id: str | None = None) -> None:
        return None

    def add_servers(self, servers: Mapping[str, Any]) -> None:
        self._servers.update(servers)
        self._dead -= set(servers)

    def remove_servers(self, server_ids: list[str]) -> None:
        self._dead.update(server_ids)

    def get_all_servers(self) -> list[str]:
        return self._alive()

    def get_inflight_count(self, server_id: str) -> int:
        return self._load[server_id]

    def get_total_inflight(self) -> int:
        return len(self._replica_of_call)

    def clear_sticky_cache(self) -> dict[str, Any]:
        return {"cleared_entries": 0, "server_loads": dict(self._load)}

    def get_status(self) -> dict[str, Any]:
        """For debugging: loads and the running step."""
        return {
            "servers": {name: self._load[name] for name in self._servers},
            "dead": sorted(self._dead),
            "total_inflight": len(self._replica_of_call),
            "active_servers": len(self._alive()),
            "step": self._run.describe() if self._run is not None else None,
        }
