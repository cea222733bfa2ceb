"""What policies and controllers are told once, and what they answer before each step."""

from dataclasses import dataclass

from tailsieve_rl.routing.draft import NO_DRAFTS, DraftDepths


@dataclass(frozen=True, slots=True)
class Setup:
    """The size of a run.

    Attributes:
        groups: N, groups a step consumes.
        responses: n, responses a group.
        replicas: R, engines.
        capacity: requests that a replica can decode at once; None: as many as come. No controller goes where a
            replica would need more.
    """

    groups: int
    responses: int
    replicas: int
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What is fixed before step t is dispatched.

    Attributes:
        m: tail replicas of step t.
        q_next: groups that it leaves over for step t + 1.
        depths: draft tokens of its pools.
    """

    m: int
    q_next: int
    depths: DraftDepths = NO_DRAFTS
