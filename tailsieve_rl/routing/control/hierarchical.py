"""The paper's controller (3.2, C.1, C.2): a fast loop that balances the pools by q, a slow one that moves replicas.

| after a step                     | what happens                                                                     |
|----------------------------------|----------------------------------------------------------------------------------|
| a change of q is settling        | nothing: the batch's composition is in transition                                |
| uniform routing                  | enters at m = 1 and the best q for it, if the predicted gain suffices            |
| two pools                        | rates are measured; q moves towards q*, if the predicted gain suffices           |
| two pools, q needs no change     | the outer loop: m moves by one replica, or to (0, 0), if the predicted gain does |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailsieve_rl.routing.allocation import UNIFORM, Allocation, check_allocation
from tailsieve_rl.routing.control.controller import Adaptive
from tailsieve_rl.routing.control.evidence import Evidence, no_evidence
from tailsieve_rl.routing.control.forecast import Forecast
from tailsieve_rl.routing.control.inner import Rates, balance_point, bounded, measured_rates, move_towards, smoothed
from tailsieve_rl.routing.control.outer import RADIUS, choose_split, marginal_capacity, pressures
from tailsieve_rl.routing.control.tuning import SETTLE_AFTER_DECREASE, SETTLE_AFTER_INCREASE, Tuning, largest_q, spread
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.setup import Setup


@dataclass(frozen=True, slots=True)
class HierarchicalState:
    """Between two steps.

    Attributes:
        setup: N, n, R.
        applied: m for the coming step, and q for the tail set that it selects.
        evidence: what was seen.
        rates: smoothed, at the present m; None until measured.
        velocity: of q, groups.
        hold: steps until the last change of q has settled.
        steps: steps seen.
        figures: for the report.
    """

    setup: Setup
    applied: Allocation
    evidence: Evidence
    rates: Rates | None = None
    velocity: float = 0.0
    hold: int = 0
    steps: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hierarchical(Adaptive):
    """Paper 3.2.

    Attributes:
        allocation: where to start.
        model: the decode model; None: estimated from the run.
        tuning: what it has in common with other controllers.
        ema: weight of a new measurement of the pools' rates. One half forgets a step in three, as long as the longest
            transition.
        momentum: weight of q's old velocity; one half turns a lone outlier into a quarter of its change.
        inner_threshold: predicted saving that a change of q must promise, as a share of the makespan; half of the
            switching threshold, since q is moved often and in small steps.
        outer: whether m may change (the paper's fixed allocation has it off).
    """

    allocation: Allocation
    model: DecodeModel | None = None
    tuning: Tuning = Tuning()  # noqa: RUF009 - frozen
    ema: float = 0.5
    momentum: float = 0.5
    inner_threshold: float = 0.005
    outer: bool = True

    def start(self, setup: Setup) -> HierarchicalState:
        check_allocation(self.allocation, setup.groups, setup.replicas)
        return HierarchicalState(setup, self.allocation, no_evidence(setup.responses, self.model))

    def observe(self, state: HierarchicalState, outcome: StepOutcome) -> HierarchicalState:
        keep = self.tuning.history_steps * state.setup.groups
        evidence = state.evidence.add(outcome, keep)
        state = replace(state, evidence=evidence, steps=state.steps + 1)
        if state.setup.replicas < 2 or state.setup.groups < 2:
            return state
        forecast = self.tuning.forecast(evidence, state.setup, state.steps, outcome.plan.depths)
        if forecast is None:
            return state
        if state.hold:
            state = replace(state, hold=state.hold - 1)
        elif state.applied.is_uniform:
            state = self._enter(state, forecast) if self.outer else state
        else:
            state = self._balance(state, forecast, outcome)
        predicted = forecast.step_s(Allocation(outcome.plan.q_next, state.applied.m))
        return replace(state, figures={**state.figures, **evidence.figures(), "predicted_s": predicted})

    def _balance(self, state: HierarchicalState, forecast: Forecast, outcome: StepOutcome) -> HierarchicalState:
        """The inner loop; the outer one when q is where it should be."""
        measured = measured_rates(outcome)
        if measured is None or outcome.plan.m != state.applied.m:
            return state
        rates = smoothed(state.rates, measured, self.ema)
        at, setup = state.applied, state.setup
        goal = balance_point(rates, setup.groups)
        move = move_towards(
            at.q, goal, state.velocity, self.momentum, self.tuning.change_bound(setup), self._largest_q(setup, at.m)
        )
        state = replace(state, rates=rates, velocity=move.velocity)
        if move.q != at.q:
            now_s, then_s = forecast.step_s(at), forecast.step_s(Allocation(move.target, at.m))
            if 1.0 - then_s / now_s >= self.inner_threshold:
                hold = SETTLE_AFTER_INCREASE if move.q > at.q else SETTLE_AFTER_DECREASE
                return replace(state, applied=Allocation(move.q, at.m), hold=hold)
        return self._split(state, forecast) if self.outer else state

    def _split(self, state: HierarchicalState, forecast: Forecast) -> HierarchicalState:
        """The outer loop: one replica at most, or to uniform routing; q is then balanced anew."""
        at, setup = state.applied, state.setup
        tail, bulk = pressures(forecast, at)
        alpha = at.m / setup.replicas
        m_tail, m_bulk = marginal_capacity(tail, alpha), marginal_capacity(bulk, 1 - alpha)
        allowed = [m for m in range(1, setup.replicas) if self.tuning.has_room(setup, Allocation(at.q, m))]
        choice = choose_split(forecast, at, m_tail > m_bulk, allowed)
        figures = {"marginal_capacity_tail": m_tail, "marginal_capacity_bulk": m_bulk}
        state = replace(state, figures={**figures, **_proposed(choice.target)})
        if choice.target == at or choice.gain <= self.tuning.switch_threshold:
            return state
        if choice.target.is_uniform:
            return replace(state, applied=UNIFORM, rates=None, velocity=0.0, hold=SETTLE_AFTER_DECREASE)
        moved = Allocation(at.q, at.m + bounded(choice.target.m - at.m, 1))
        return replace(state, applied=moved, rates=None, velocity=0.0)

    def _enter(self, state: HierarchicalState, forecast: Forecast) -> HierarchicalState:
        """From uniform routing: by one replica, with the q that is best for it."""
        setup = state.setup
        options = {
            at: forecast.step_s(at)
            for m in range(1, min(RADIUS, setup.replicas - 1) + 1)
            for q in spread(1, largest_q(setup))
            if self.tuning.has_room(setup, at := Allocation(q, m))
        }
        now_s = forecast.step_s(UNIFORM)
        best = min(options, key=lambda at: options[at], default=UNIFORM)
        if best.is_uniform or 1.0 - options[best] / now_s <= self.tuning.switch_threshold:
            return replace(state, figures=_proposed(UNIFORM))
        first = min((at for at in options if at.m == 1), key=lambda at: options[at], default=best)
        return replace(state, applied=first, figures=_proposed(best), rates=None, hold=SETTLE_AFTER_INCREASE)

    def _largest_q(self, setup: Setup, m: int) -> int:
        largest = largest_q(setup)
        while largest > 1 and not self.tuning.has_room(setup, Allocation(largest, m)):
            largest -= 1
        return largest


def _proposed(target: Allocation) -> dict[str, float]:
    return {"proposed_q": float(target.q), "proposed_m": float(target.m)}
