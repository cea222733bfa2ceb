"""The running step with its clock: the pure state machine of routing.step plus what each dispatch did and when."""

from dataclasses import dataclass, field
from itertools import zip_longest

from tailsieve_rl.rollout.step_clock import StepClock
from tailsieve_rl.routing.draft import sized
from tailsieve_rl.routing.outcome import GroupOutcome, ResponseRecord, ResponseStatus, StepOutcome
from tailsieve_rl.routing.plan import GroupTask, Pool, StepPlan
from tailsieve_rl.routing.step import StepState, Verdict, begin, response_finished


@dataclass(slots=True)
class _Dispatch:
    """One try of one response: a row of requests.parquet in the making. Times are seconds since the step's start."""

    uid: str
    session: int
    attempt: int
    retry: int
    pool: Pool
    replica: str
    prompt_tokens: int
    dispatch_s: float
    first_token_s: float | None = None
    end_s: float = 0.0
    tokens: int = 0
    status: ResponseStatus | None = None
    drafted_tokens: int = 0
    accepted: tuple[int, ...] = ()


@dataclass(slots=True)
class StepRun:
    """What the coordinator knows of the step that is running.

    Attributes:
        plan: what was planned.
        prompt_index: row in the data set of each group's prompt.
        version: weight version of the step.
        clock: seconds since the step's first dispatch.
        published: uids of groups that are in the queue.
        retries: tries of responses that failed.
        refused: arrivals of older attempts that were turned away.
        pool_fallbacks: responses placed outside their pool, because it had no live replica.
        set_depth_s: seconds that setting the engines' draft depths took; part of the generation time.
        abort_s: seconds from the cutoff until every abort was verified.
        aborts_verified: no aborted request is left in an engine.
        failed: the step cannot be completed; nothing is accepted any more.
        emulation_lag_s: of emulated engines, the longest that the news of a finished response took, emulated seconds.
    """

    plan: StepPlan
    prompt_index: dict[str, int]
    version: int
    clock: StepClock
    state: StepState = field(init=False)
    published: set[str] = field(default_factory=set)
    retries: int = 0
    refused: int = 0
    pool_fallbacks: int = 0
    set_depth_s: float = 0.0
    abort_s: float = 0.0
    aborts_verified: bool = False
    failed: bool = False
    emulation_lag_s: float = 0.0
    _tasks: dict[str, GroupTask] = field(init=False)
    _calls: dict[str, _Dispatch] = field(default_factory=dict)
    _current: dict[tuple[str, int], _Dispatch] = field(default_factory=dict)
    _dispatches: list[_Dispatch] = field(default_factory=list)
    _group_s: dict[str, float] = field(default_factory=dict)
    _published_s: float = 0.0

    def __post_init__(self) -> None:
        self.state = begin(self.plan)
        self.aborts_verified = self.state.cutoff_s is not None
        self._tasks = {task.uid: task for task in self.plan.groups}

    def now(self) -> float:
        """Seconds since the step's first dispatch."""
        return self.clock.now()

    def accepts(self, uid: str, attempt: int) -> bool:
        """Whether work for this attempt of this group may go on."""
        return not self.failed and self.state.is_current(uid, attempt)

    def plan_task(self, uid: str) -> GroupTask:
        return self._tasks[uid]

    def replica_of(self, uid: str, session: int, retry: int) -> str | None:
        """The replica that this try of the response runs on, once it has one."""
        dispatch = self._current.get((uid, session))
        return dispatch.replica if dispatch is not None and dispatch.retry == retry else None

    def call_started(self, call: str, uid: str, session: int, retry: int, replica: str, prompt_tokens: int) -> None:
        """A generate call was given a replica; the first one of a try opens its row."""
        dispatch = self._current.get((uid, session))
        if dispatch is None or dispatch.retry != retry:
            task = self._tasks[uid]
            dispatch = _Dispatch(
                uid, session, task.attempt, retry, task.pool, replica, prompt_tokens, dispatch_s=self.now()
            )
            self._current[uid, session] = dispatch
            self._dispatches.append(dispatch)
        self._calls[call] = dispatch

    def call_ended(self, call: str, tokens: int, drafted_tokens: int = 0, accepted: tuple[int, ...] = ()) -> None:
        """A generate call returned. The length of a finished response is told by response_finished."""
        dispatch = self._calls.pop(call, None)
        if dispatch is not None and drafted_tokens:
            dispatch.drafted_tokens += drafted_tokens
            dispatch.accepted = tuple(map(sum, zip_longest(dispatch.accepted, accepted, fillvalue=0)))
        if dispatch is not None and dispatch.status is None:
            dispatch.tokens += tokens
            dispatch.end_s = self.now()

    def calls_of_candidates(self) -> list[str]:
        """Calls in flight of the groups that the cutoff left over."""
        candidates = set(self.state.candidates)
        return [call for call, dispatch in self._calls.items() if dispatch.uid in candidates]

    @property
    def all_dispatched(self) -> bool:
        """Every response of the plan has had a replica."""
        return len(self._current) == len(self.plan.groups) * self.plan.responses

    def response_finished(
        self,
        uid: str,
        session: int,
        attempt: int,
        tokens: int,
        first_token_s: float | None,
        emulated_end_s: float | None = None,
    ) -> Verdict:
        """Count a finished response, close its row. An emulated engine says itself when it finished."""
        at_s = self.now()
        if emulated_end_s is not None:
            self.emulation_lag_s = max(self.emulation_lag_s, at_s - emulated_end_s)
            at_s = emulated_end_s
        # News of emulated responses may come out of order: a group finishes with the last of them.
        group_s = self._group_s[uid] = max(at_s, self._group_s.get(uid, 0.0))
        self.state, verdict = response_finished(self.state, uid, session, attempt, tokens, group_s)
        dispatch = self._current[uid, session]
        dispatch.tokens, dispatch.end_s, dispatch.status = tokens, at_s, ResponseStatus.CONSUMED
        if first_token_s is not None:
            dispatch.first_token_s = dispatch.dispatch_s + first_token_s
        return verdict

    def response_retried(self, uid: str, session: int) -> None:
        """A try failed: close its row, if it ever got a replica."""
        self.retries += 1
        dispatch = self._current.get((uid, session))
        if dispatch is not None:
            dispatch.status, dispatch.end_s = ResponseStatus.RETRIED, self.now()

    @property
    def complete(self) -> bool:
        """Every consumed group is published and every abort is verified."""
        done = self.state.complete and self.aborts_verified
        if done and len(self.published) == len(self.state.tail_consumed) + len(self.state.fresh_consumed):
            self._published_s = self._published_s or self.now()
            return True
        return False

    def outcome(self) -> StepOutcome:
        """The finished step."""
        consumed = tuple(
            GroupOutcome(uid, g.task.tail, tuple(g.lengths[i] for i in sorted(g.lengths)), g.finished_s)
            for uid, g in self.state.groups.items()
            if g.finished_s is not None
        )
        tail_s = max((g.finished_s for g in consumed if g.tail), default=0.0)
        bulk_s = max((g.finished_s for g in consumed if not g.tail), default=0.0)
        return StepOutcome(
            plan=self.plan,
            consumed=consumed,
            candidates=self.state.candidates,
            cutoff_s=None if self.state.cutoff_s is None else bulk_s,
            tail_time_s=tail_s,
            bulk_time_s=bulk_s,
            gen_time_s=max(tail_s, bulk_s),
            records=tuple(self._record(d) for d in self._dispatches),
            retries=self.retries,
            refused=self.refused,
        )

    def extras(self) -> dict[str, float]:
        """Measurements beside the outcome: seconds and counts."""
        gen_s = max((g.finished_s or 0.0 for g in self.state.groups.values()), default=0.0)
        return {
            "abort_s": self.abort_s,
            "set_depth_s": self.set_depth_s,
            "reward_wait_s": max(0.0, self._published_s - gen_s),
            "pool_fallbacks": float(self.pool_fallbacks),
            "emulation_lag_s": self.emulation_lag_s,
        }

    def describe(self) -> str:
        """The whole state in one line, for the watchdog's message."""
        waiting = {
            uid: sorted(set(range(self.plan.responses)) - set(g.lengths))
            for uid, g in self.state.groups.items()
            if g.finished_s is None and uid not in self.state.candidates
        }
        cutoff = "not reached" if self.state.cutoff_s is None else f"at {self.state.cutoff_s:.1f} s"
        return (
            f"step {self.plan.step}, allocation {self.plan.allocation}, cutoff {cutoff}; "
            f"fresh {len(self.state.fresh_consumed)}/{self.plan.fresh_needed}, "
            f"tail {len(self.state.tail_consumed)}/{self.plan.q}, published {len(self.published)}, "
            f"aborts verified {self.aborts_verified}, calls in flight {sorted(self._calls)}, waiting for {waiting}"
        )

    def _record(self, d: _Dispatch) -> ResponseRecord:
        status = d.status
        if status is None or (status is ResponseStatus.CONSUMED and self.state.groups[d.uid].finished_s is None):
            status = ResponseStatus.ABORTED
        depth = self.plan.depth_of(d.pool)
        return ResponseRecord(
            uid=d.uid,
            prompt_index=self.prompt_index[d.uid],
            session=d.session,
            attempt=d.attempt,
            pool=d.pool,
            replica=d.replica,
            status=status,
            prompt_tokens=d.prompt_tokens,
            response_tokens=d.tokens,
            dispatch_s=d.dispatch_s,
            first_token_s=d.first_token_s,
            end_s=d.end_s or self.now(),
            draft_depth=depth,
            drafted_tokens=d.drafted_tokens,
            accepted=sized(d.accepted, depth),
        )
