"""The outer loop: m such that both pools have the same marginal capacity (paper 3.2 and C.2).

The comparison of M_tail and M_bulk says which way to go; because the makespan is not unimodal in m, the splits within
a radius of two are evaluated on the full model and the best one decides (C.2, "discrete controller").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control.forecast import Forecast

RADIUS = 2


@dataclass(frozen=True, slots=True)
class Pressure:
    """Sensitivity of a pool's time.

    Attributes:
        cutoff: lambda, change of ln(time) per change of p = q / N in the direction that slows the pool.
        elasticity: gamma, change of ln(time) per change of ln(concurrency).
    """

    cutoff: float
    elasticity: float


def marginal_capacity(pressure: Pressure, share: float) -> float:
    """M = gamma / (share lambda): groups that a pool takes on per replica added. `share` is alpha or 1 - alpha."""
    if pressure.cutoff <= 0:
        return float("inf") if pressure.elasticity > 0 else 0.0
    return pressure.elasticity / (share * pressure.cutoff)


def balanced_share(tail: Pressure, bulk: Pressure) -> float:
    """alpha* = gamma_tail lambda_bulk / (gamma_tail lambda_bulk + gamma_bulk lambda_tail), where M_tail = M_bulk."""
    give, take = tail.elasticity * bulk.cutoff, bulk.elasticity * tail.cutoff
    return give / (give + take)


def pressures(forecast: Forecast, at: Allocation) -> tuple[Pressure, Pressure]:
    """(tail, bulk) pressures at an interior allocation, by differences to its neighbours.

    Concurrency changes with m alone: b_tail = N p / (R alpha), b_bulk = N (1 - p) / (R (1 - alpha)).
    """
    fewer, more = _neighbours(at.q, 1, forecast.groups - 1)
    dp = (more - fewer) / forecast.groups

    def tail(q: int, m: int) -> float:
        return log(forecast.tail_s(Allocation(q, m)).mean())

    def bulk(q: int, m: int) -> float:
        return log(forecast.bulk_s(Allocation(q, m)).mean())

    tail_cutoff = (tail(more, at.m) - tail(fewer, at.m)) / dp if dp else 0.0
    bulk_cutoff = (bulk(fewer, at.m) - bulk(more, at.m)) / dp if dp else 0.0
    small, large = _neighbours(at.m, 1, forecast.replicas - 1)
    if small == large:
        return Pressure(tail_cutoff, 0.0), Pressure(bulk_cutoff, 0.0)
    tail_gamma = (tail(at.q, small) - tail(at.q, large)) / log(large / small)
    bulk_gamma = (bulk(at.q, large) - bulk(at.q, small)) / log(
        (forecast.replicas - small) / (forecast.replicas - large)
    )
    return Pressure(tail_cutoff, max(tail_gamma, 0.0)), Pressure(bulk_cutoff, max(bulk_gamma, 0.0))


def deadline_feasible(forecast: Forecast, at: Allocation, m: int) -> bool:
    """Whether the pool that grows finishes at least the groups that the other no longer can, by the present barrier.

    G >= D of C.2: G is what the growing pool gains by the predicted deadline, D what the shrinking pool loses.
    """
    if m == at.m:
        return True
    deadline = forecast.step_s(at)
    most = forecast.groups - 1
    tail = forecast.tail_done(m, deadline, most) - forecast.tail_done(at.m, deadline, most)
    bulk = forecast.bulk_done(m, deadline) - forecast.bulk_done(at.m, deadline)
    return tail + bulk >= 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The outer loop's answer.

    Attributes:
        target: the best allocation among those in reach, (0, 0) included.
        target_s, current_s: predicted makespans, seconds.
    """

    target: Allocation
    target_s: float
    current_s: float

    @property
    def gain(self) -> float:
        """Predicted saving as a share of the present makespan."""
        return 1.0 - self.target_s / self.current_s


def choose_split(forecast: Forecast, at: Allocation, towards_tail: bool, allowed: Sequence[int]) -> Choice:
    """Evaluate all feasible splits within a radius of two at the present q, and uniform routing.

    Args:
        forecast: the model.
        at: the present allocation, not uniform.
        towards_tail: whether M_tail > M_bulk; decides between splits that are predicted alike.
        allowed: tail replicas that leave room for every request.
    """
    near = [m for m in allowed if abs(m - at.m) <= RADIUS]
    side = 1 if towards_tail else -1
    preferred = sorted(near, key=lambda m: (m != at.m, -side * (m - at.m)))
    current_s = forecast.step_s(at)
    options = {m: forecast.step_s(Allocation(at.q, m)) for m in preferred}
    # Whether a split is feasible takes longer to find out than how fast it is: asked of the fastest first.
    fastest = sorted(options, key=lambda m: options[m])
    best = next((m for m in fastest if deadline_feasible(forecast, at, m)), None)
    uniform_s = forecast.step_s(UNIFORM)
    if best is None or uniform_s <= options[best]:
        return Choice(UNIFORM, uniform_s, current_s)
    return Choice(Allocation(at.q, best), options[best], current_s)


def _neighbours(value: int, least: int, most: int) -> tuple[int, int]:
    return max(value - 1, least), min(value + 1, most)
