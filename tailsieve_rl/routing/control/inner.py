"""The inner loop: q such that both pools finish together (paper 3.2 and C.1)."""

from dataclasses import dataclass

from tailsieve_rl.routing.outcome import StepOutcome


@dataclass(frozen=True, slots=True)
class Rates:
    """Processing rates of the pools, groups per second."""

    tail: float
    bulk: float


def measured_rates(outcome: StepOutcome) -> Rates | None:
    """r_tail = q / T_tail and r_bulk = (N - q) / T_bulk of a step; None if one of the pools was idle."""
    plan = outcome.plan
    if not plan.q or not plan.m or not plan.fresh_needed or min(outcome.tail_time_s, outcome.bulk_time_s) <= 0:
        return None
    return Rates(plan.q / outcome.tail_time_s, plan.fresh_needed / outcome.bulk_time_s)


def smoothed(before: Rates | None, measured: Rates, ema: float) -> Rates:
    """Exponential moving average; `ema` is the weight of the new measurement."""
    if before is None:
        return measured
    return Rates(
        ema * measured.tail + (1 - ema) * before.tail,
        ema * measured.bulk + (1 - ema) * before.bulk,
    )


def balance_point(rates: Rates, groups: int) -> float:
    """q* = N r_tail / (r_bulk + r_tail): the q at which both pools are expected to finish together."""
    return groups * rates.tail / (rates.bulk + rates.tail)


@dataclass(frozen=True, slots=True)
class Move:
    """A damped step towards q*.

    Attributes:
        velocity: groups; what momentum carries over.
        target: q to which the velocity leads, unbounded.
        q: q after the bounded change.
    """

    velocity: float
    target: int
    q: int


def move_towards(q: int, goal: float, velocity: float, momentum: float, max_change: int, largest: int) -> Move:
    """The damped momentum update, its change bounded.

    Args:
        q: isolated groups now.
        goal: q*.
        velocity: of the last move, groups.
        momentum: weight of the old velocity, 0 (none) to below 1.
        max_change: largest change, groups.
        largest: largest q allowed; the smallest is 1, for leaving the tail pool is the outer loop's to decide.
    """
    velocity = momentum * velocity + (1 - momentum) * (goal - q)
    target = min(max(q + round(velocity), 1), largest)
    return Move(velocity, target, q + bounded(target - q, max_change))


def bounded(change: int, max_change: int) -> int:
    """The change, cut to +-max_change."""
    return min(max(change, -max_change), max_change)
