"""The joint controller: searches all (q, m) on the predictive model (design.md, section 7).

It sees what the hierarchical one sees. Where that one follows the measured balance of the pools, one variable at a
time, this one asks the forecast about every pair at once: a pair is proposed after the first steps, from any start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailsieve_rl.routing.allocation import UNIFORM, Allocation, check_allocation
from tailsieve_rl.routing.control.controller import Adaptive
from tailsieve_rl.routing.control.evidence import Evidence, no_evidence
from tailsieve_rl.routing.control.forecast import Forecast
from tailsieve_rl.routing.control.inner import bounded
from tailsieve_rl.routing.control.tuning import SETTLE_AFTER_DECREASE, SETTLE_AFTER_INCREASE, Tuning, largest_q, spread
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.setup import Setup

Surface = Mapping[Allocation, float]


@dataclass(frozen=True, slots=True)
class JointState:
    """Between two steps.

    Attributes:
        setup: N, n, R.
        q: of the tail set that is waiting, i.e. of the coming step.
        applied: m for the coming step, and q for the tail set that it selects.
        target: the pair that is being approached.
        evidence: what was seen.
        surface: smoothed makespans by pair, as shares of the uniform one.
        hold: steps until the last change of q has settled.
        steps: steps seen.
        figures: for the report.
    """

    setup: Setup
    applied: Allocation
    target: Allocation
    evidence: Evidence
    surface: Surface = field(default_factory=dict)
    hold: int = 0
    steps: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Joint(Adaptive):
    """Predictive search over (q, m).

    Attributes:
        allocation: where to start.
        model: the decode model; None: estimated from the run.
        tuning: what it has in common with other controllers.
        smoothing: weight of a new surface. The forecasts of neighbouring steps share most of their groups, but not
            their draws: a fifth averages some ten of them, as many steps as the history has.
        isolation_gain: predicted saving over uniform routing, as a share of it, below which no group is isolated:
            isolation throws tokens away and shifts lengths (docs/results.md), so it must pay for itself.
    """

    allocation: Allocation
    model: DecodeModel | None = None
    tuning: Tuning = Tuning()  # noqa: RUF009 - frozen
    smoothing: float = 0.2
    isolation_gain: float = 0.01

    def start(self, setup: Setup) -> JointState:
        check_allocation(self.allocation, setup.groups, setup.replicas)
        return JointState(setup, self.allocation, self.allocation, no_evidence(setup.responses, self.model))

    def observe(self, state: JointState, outcome: StepOutcome) -> JointState:
        setup = state.setup
        evidence = state.evidence.add(outcome, self.tuning.history_steps * setup.groups)
        state = replace(state, evidence=evidence, steps=state.steps + 1)
        if setup.replicas < 2 or setup.groups < 2:
            return state
        forecast = self.tuning.forecast(evidence, setup, state.steps, outcome.plan.depths)
        if forecast is None:
            return state
        state = replace(state, surface=self._smoothed(state, forecast))
        best = self._best(state)
        if self._worth(state.surface, state.target, best):
            state = replace(state, target=best)
        waiting = outcome.plan.q_next
        state = self._approach(state, waiting)
        figures = {
            **evidence.figures(),
            "proposed_q": float(best.q),
            "proposed_m": float(best.m),
            "predicted_s": forecast.step_s(Allocation(waiting, state.applied.m)),
        }
        return replace(state, figures=figures)

    def _smoothed(self, state: JointState, forecast: Forecast) -> dict[Allocation, float]:
        """The surface, with this step's forecast mixed in.

        Shares of the uniform time are averaged, not seconds: the level of a drawn pool is common to all pairs.
        """
        uniform_s = forecast.step_s(UNIFORM)
        weight = max(self.smoothing, 1.0 / state.steps)
        surface = {}
        for pair in self._pairs(state.setup):
            now = forecast.step_s(pair) / uniform_s
            surface[pair] = (1 - weight) * state.surface.get(pair, now) + weight * now
        return surface

    def _pairs(self, setup: Setup) -> list[Allocation]:
        pairs = [
            Allocation(q, m)
            for m in spread(1, setup.replicas - 1, exact=16)
            for q in spread(1, largest_q(setup), exact=10)
        ]
        return [UNIFORM, *(pair for pair in pairs if self.tuning.has_room(setup, pair))]

    def _best(self, state: JointState) -> Allocation:
        """The fastest pair, or (0, 0) if no pair is faster by enough; it takes more to go there than to stay."""
        pair = min((pair for pair in state.surface if pair.q), key=lambda pair: state.surface[pair], default=UNIFORM)
        enough = self.isolation_gain + (self.tuning.switch_threshold if state.target.is_uniform else 0.0)
        return pair if 1.0 - state.surface[pair] > enough else UNIFORM

    def _worth(self, surface: Surface, now: Allocation, then: Allocation) -> bool:
        """Whether to change the target: at once to and from uniform routing, else if it promises enough."""
        if then.is_uniform or now.is_uniform:
            return then != now
        return 1.0 - surface[then] / _at(surface, now) > self.tuning.switch_threshold

    def _approach(self, state: JointState, waiting: int) -> JointState:
        """q goes towards the target by max_change at most, at once to and from uniform routing; m follows q."""
        q, goal, hold = state.applied.q, state.target, state.hold
        if hold:
            hold -= 1
        elif q != goal.q:
            through_boundary = q == 0 or goal.q == 0
            step = goal.q - q if through_boundary else bounded(goal.q - q, self.tuning.change_bound(state.setup))
            q, hold = q + step, SETTLE_AFTER_INCREASE if step > 0 else SETTLE_AFTER_DECREASE
        m = self._best_m(state, waiting) if waiting else 0
        return replace(state, applied=Allocation(q, m), hold=hold)

    def _best_m(self, state: JointState, q: int) -> int:
        """The best split for a tail set of q groups: the target's own if q is what it asks for, 0 if none has room."""
        if q == state.target.q:
            return state.target.m
        splits = sorted({pair.m for pair in state.surface if pair.m})
        return min(splits, key=lambda m: _at(state.surface, Allocation(q, m)), default=0)


def _at(surface: Surface, at: Allocation) -> float:
    """The surface at any pair: linear in q between its neighbours, at the nearest m that it has."""
    if at in surface:
        return surface[at]
    if at.q == 0 or at.m == 0:
        return surface[UNIFORM]
    m = min((pair.m for pair in surface if pair.m), key=lambda known: abs(known - at.m))
    column = sorted((pair.q, value) for pair, value in surface.items() if pair.m == m)
    below = max((p for p in column if p[0] <= at.q), default=column[0])
    above = min((p for p in column if p[0] >= at.q), default=column[-1])
    if above[0] == below[0]:
        return below[1]
    return below[1] + (above[1] - below[1]) * (at.q - below[0]) / (above[0] - below[0])
