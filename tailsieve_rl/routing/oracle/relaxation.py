"""What a split that is begun must still cost: the lower bound that makes the search of two_replicas small.

For any weight w within 0 and 1 the slower of two replicas takes at least w T_A + (1 - w) T_B. Under that sum each
request costs w or 1 - w times its marginal cost, which depends only on how many longer requests its replica holds:
the cheapest way to place the rest is a dynamic program over counts alone, exact for every tau (Lagrangian relaxation).
"""

from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.makespan import Floats

# The bound is only as good as its best weight. The optimum's own weight is close to that of the whole problem, so
# weights are dense there; an even grid serves the splits that are far from balanced.
NEAREST, GROWTH, EVEN = 1e-4, 1.25, 65
ROUNDS, GRID = 8, 17


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Lower bounds for every state of a search.

    Attributes:
        weights: (weights,) of replica A, ascending from 0 to 1.
        rest: (requests + 1, requests + 1, weights) seconds: the least weighted time that the requests which are not
            yet placed add, by requests placed and requests of them on A.
        turns: (requests + 1, requests + 1, weights - 1) seconds: T_A - T_B from which on the next weight is better.
    """

    weights: Floats
    rest: Floats
    turns: Floats

    def bound(self, placed: int, on_a: int, a: Floats, b: Floats) -> Floats:
        """Seconds that every completion of some states takes at least.

        Args:
            placed: requests placed.
            on_a: how many of them are on A.
            a, b: (states,) seconds of A and of B so far.
        """
        # The rest is concave in the weight, so the weights take turns in their order as a - b grows.
        best = np.searchsorted(self.turns[placed, on_a], a - b)
        weight = self.weights[best]
        return weight * a + (1.0 - weight) * b + self.rest[placed, on_a][best]


def relax(lengths: Floats, rises: Floats) -> Relaxation:
    """Bounds for a problem of two replicas.

    Args:
        lengths: (requests,) tokens, longest first.
        rises: (requests,) seconds per token that a request adds, by the number of longer ones on its replica.
    """
    costs = lengths[:, None] * rises
    centre = _best_weight(costs)
    steps = NEAREST * GROWTH ** np.arange(np.ceil(np.log(1 / NEAREST) / np.log(GROWTH)))
    near = np.concatenate([[centre], centre - steps, centre + steps])
    weights = np.unique(np.concatenate([near[(near > 0) & (near < 1)], np.linspace(0.0, 1.0, EVEN)]))
    rest = _rest(costs, weights)
    return Relaxation(weights, rest, -np.diff(rest, axis=-1) / np.diff(weights))


def _rest(costs: Floats, weights: Floats) -> Floats:
    requests = len(costs)
    rest = np.zeros((requests + 1, requests + 1, len(weights)))
    for placed in range(requests - 1, -1, -1):
        on_a = np.arange(placed + 1)
        to_a = costs[placed, on_a, None] * weights + rest[placed + 1, on_a + 1]
        to_b = costs[placed, placed - on_a, None] * (1.0 - weights) + rest[placed + 1, on_a]
        rest[placed, on_a] = np.minimum(to_a, to_b)
    return rest


def _best_weight(costs: Floats) -> float:
    """The weight with the highest bound when the longest request is on A: nested grids, as the bound is concave."""
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        weights = np.linspace(low, high, GRID)
        best = int(np.argmax(costs[0, 0] * weights + _rest(costs, weights)[1, 1]))
        low, high = weights[max(best - 1, 0)], weights[min(best + 1, GRID - 1)]
    return float(weights[best])
