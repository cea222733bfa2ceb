"""What one step did, as the controllers and the result files see it.

Times are seconds since the step's first dispatch.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from tailsieve_rl.routing.draft import Depth
from tailsieve_rl.routing.plan import Pool, StepPlan


class ResponseStatus(StrEnum):
    """How one dispatch of one response ended."""

    CONSUMED = "consumed"
    ABORTED = "aborted"
    RETRIED = "retried"


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """One dispatch of one response: a row of requests.parquet.

    Attributes:
        uid: the group.
        prompt_index: row of the prompt in the data set.
        session: which of the group's n responses.
        attempt: the group's attempt number.
        pool: pool it ran in.
        replica: name of the replica.
        status: how it ended.
        prompt_tokens: length of the prompt.
        response_tokens: tokens generated, partial ones of an aborted response included.
        dispatch_s: when a replica was chosen for it.
        first_token_s: when its first token came; None if none did.
        end_s: when it ended.
        draft_depth: draft tokens that its replica ran at.
        drafted_tokens: draft tokens that were verified for it.
        accepted: how many verifications accepted 0, 1, 2, ... drafts; empty without speculation or where not known.
    """

    uid: str
    prompt_index: int
    session: int
    attempt: int
    pool: Pool
    replica: str
    status: ResponseStatus
    prompt_tokens: int
    response_tokens: int
    dispatch_s: float
    first_token_s: float | None
    end_s: float
    draft_depth: Depth = 0
    drafted_tokens: int = 0
    accepted: tuple[int, ...] = ()

    @property
    def accepted_tokens(self) -> int:
        """Drafts that became tokens of the response."""
        return sum(i * count for i, count in enumerate(self.accepted))


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """One consumed group.

    Attributes:
        uid: the group.
        tail: whether it had been left over by the previous step.
        lengths: response tokens of each of its n responses.
        finished_s: when its last response finished generating.
    """

    uid: str
    tail: bool
    lengths: tuple[int, ...]
    finished_s: float

    @property
    def work(self) -> int:
        """Response tokens of the group."""
        return sum(self.lengths)


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """One finished step.

    Attributes:
        plan: what was planned.
        consumed: the groups of the batch.
        candidates: uids left over for the next step.
        cutoff_s: when the bulk pool had completed the fresh groups that the step needed.
        tail_time_s: when the last tail group finished; 0 without one.
        bulk_time_s: the same as the cutoff: when the last consumed fresh group finished; 0 without one.
        gen_time_s: generation time, from the first dispatch to the last consumed token.
        records: every dispatch of every response.
        retries: responses that failed and were generated again.
        refused: arrivals from an older attempt that were turned away.
    """

    plan: StepPlan
    consumed: tuple[GroupOutcome, ...]
    candidates: tuple[str, ...]
    cutoff_s: float | None
    tail_time_s: float
    bulk_time_s: float
    gen_time_s: float
    records: tuple[ResponseRecord, ...] = field(default=())
    retries: int = 0
    refused: int = 0

    @property
    def aborted_tokens(self) -> int:
        """Tokens generated and thrown away: by the cutoff or by a retry."""
        return sum(r.response_tokens for r in self.records if r.status is not ResponseStatus.CONSUMED)

    @property
    def lengths(self) -> list[int]:
        """Response tokens of every consumed response."""
        return [length for group in self.consumed for length in group.lengths]

    @property
    def consumed_tokens(self) -> int:
        return sum(group.work for group in self.consumed)

    @property
    def wasted_fraction(self) -> float:
        """Thrown-away tokens as a share of all that were generated."""
        total = self.aborted_tokens + self.consumed_tokens
        return self.aborted_tokens / total if total else 0.0

    @property
    def imbalance(self) -> float:
        """Idle share of the pool that finished first; 0 when both finish together or there is one pool."""
        slower = max(self.tail_time_s, self.bulk_time_s)
        if not self.plan.m or not slower:
            return 0.0
        return abs(self.tail_time_s - self.bulk_time_s) / slower
