"""Graded Oracle: responses sorted by length and cut into blocks, one a replica, that finish together.

The paper's two pools are the two-block case of it: its optimum isolates few long requests and keeps completion times
aligned (2.1, 2.2). With every length known and R replicas, the same rule is applied all the way down.
"""

from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.makespan import Floats
from tailsieve_rl.routing.plan import StepPlan
from tailsieve_rl.routing.policies.assigned import Assigned, Ints, assign, known_lengths
from tailsieve_rl.routing.policies.policy import Lengths, NoTail

# Of the time of all requests on one replica: completion times that differ by less are the same.
SAME = 1e-12


@dataclass(frozen=True, slots=True)
class GradedOracle(NoTail):
    """The longest responses on the first replica with few others, the shortest on the last one with many.

    Attributes:
        tau: decode model of a replica without drafts.
    """

    tau: DecodeModel
    name: str = "graded_oracle"

    def placement(self, plan: StepPlan, lengths: Lengths | None) -> Assigned:
        known = known_lengths(self.name, plan, lengths)
        flat = known.ravel()
        order = np.argsort(-flat, kind="stable")
        sizes = even_blocks(flat[order].astype(float), self.tau.table(len(flat)), len(plan.bulk_replicas))
        replica = np.empty(len(flat), np.int64)
        replica[order] = np.repeat(np.arange(len(sizes)), sizes)
        return assign(plan, replica.reshape(known.shape))


def even_blocks(descending: Floats, table: Floats, replicas: int) -> Ints:
    """Cut sorted requests into one block a replica so that the slowest block is as fast as such blocks can be.

    Bisects the time that every block must keep; for a given time it is best to make each block, from the longest
    request on, as large as it may be (its time never falls with size where tau never does). A request that takes longer
    even alone has a replica to itself and binds nobody else: the other blocks are still made even.

    Args:
        descending: (requests,) tokens.
        table: (requests + 1,) seconds per token by batch size.
        replicas: 1 or more.

    Returns:
        (replicas,) requests of each block.
    """
    requests = len(descending)
    best = np.zeros(replicas, np.int64)
    if requests <= replicas:
        best[:requests] = 1
        return best
    best[0] = requests
    rises = np.diff(table)
    low, together = 0.0, float(np.cumsum(descending * rises).max())
    high = together
    while high - low > SAME * together:
        middle = (low + high) / 2
        sizes = _largest_blocks(descending, rises, replicas, middle)
        if sizes is None:
            low = middle
        else:
            best, high = sizes, middle
    return best


def _largest_blocks(descending: Floats, rises: Floats, replicas: int, limit_s: float) -> Ints | None:
    """Blocks as large as the time allows, of one request at least; None if they do not hold all requests."""
    sizes, start, window = np.zeros(replicas, np.int64), 0, 2 * len(descending) // replicas
    for replica in range(replicas):
        left, size, looked = len(descending) - start, 0, 0
        while size == looked < left:
            looked = min(max(window, 2 * looked), left)
            over = np.cumsum(descending[start : start + looked] * rises[:looked]) > limit_s
            size = int(np.argmax(over)) if over.any() else looked
        size = min(max(size, 1), left)
        sizes[replica], start, window = size, start + size, 2 * size
    return sizes if start == len(descending) else None
