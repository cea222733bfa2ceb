"""The sampler: a batch is the step's N groups, as the coordinator announces them. No polling."""

from typing import Any

import ray
import transfer_queue as tq
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

from tailsieve_rl.rollout.errors import StepFailed
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.telemetry.metrics import step_metrics


class TailSieveSampler(ReplayBuffer):
    """verl's ReplayBuffer for the `tailsieve` mode.

    Attributes:
        outcome: the last finished step.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._coordinator: Any = None
        self.outcome: StepOutcome | None = None

    def bind(self, coordinator: Any) -> None:
        """Tell the coordinator's handle, once it exists."""
        self._coordinator = coordinator

    def wait_step(self) -> tuple[StepOutcome, dict[str, float]]:
        """Wait for the running step. Returns its outcome and the coordinator's measurements beside it.

        Raises:
            StepFailed: with the cause, if it cannot be completed.
        """
        outcome = ray.get(self._coordinator.wait_step.remote())
        return outcome, ray.get(self._coordinator.step_extras.remote())

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[KVBatchMeta, dict[str, Any]]:
        """Wait for the step's groups and return all their trajectories.

        Args:
            global_steps: the policy update.
            partition_id: "train", or "val" for validation prompts.
            batch_size: N groups.

        Raises:
            StepFailed: if the step cannot be completed, or the queue does not hold exactly N whole groups.
        """
        if partition_id == "val":
            ray.get(self._coordinator.wait_validation.remote(batch_size))
            return super().sample(global_steps, partition_id, batch_size)
        outcome, extras = self.wait_step()
        self.outcome = outcome
        batch = _whole_groups(outcome, partition_id, batch_size)
        return batch, step_metrics(outcome, extras)


def _whole_groups(outcome: StepOutcome, partition_id: str, batch_size: int) -> KVBatchMeta:
    """The trajectories of the consumed groups, refused unless they are exactly N groups of n responses."""
    published = tq.kv_list(partition_id).get(partition_id, {})
    sessions: dict[str, set[str]] = {group.uid: set() for group in outcome.consumed}
    keys, tags = [], []
    for key, tag in published.items():
        uid, session, _ = key.rsplit("_", 2)
        if uid not in sessions:
            raise StepFailed(f"step {outcome.plan.step}: the queue holds {key}, which no consumed group has")
        sessions[uid].add(session)
        keys.append(key)
        tags.append(tag)
    n = outcome.plan.responses
    broken = {uid: sorted(found) for uid, found in sessions.items() if len(found) != n}
    if broken or len(sessions) != batch_size:
        raise StepFailed(
            f"step {outcome.plan.step}: {len(sessions)} groups for a batch of {batch_size}; "
            f"groups without their {n} responses: {broken}"
        )
    return KVBatchMeta(partition_id=partition_id, keys=keys, tags=tags)
