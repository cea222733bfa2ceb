"""Both controllers, step by step: what they see, what they decide, and when they hold still."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import CONTROLLERS, Controller, Fixed, Hierarchical, Joint
from tailsieve_rl.routing.control.evidence import no_evidence
from tailsieve_rl.routing.control.tuning import Tuning, largest_q, spread
from tailsieve_rl.routing.decode_model import model_of_curve
from tailsieve_rl.routing.outcome import GroupOutcome, StepOutcome
from tailsieve_rl.routing.plan import plan_step
from tailsieve_rl.routing.setup import Setup

SETUP = Setup(groups=32, responses=4, replicas=4)
B = np.array([1, 2, 4, 8, 16, 32, 64, 128])
SLOWING = model_of_curve(B, 0.005 * (1 + B / 8))
FLAT = model_of_curve(B, np.full(len(B), 0.01))


def step_of(state: object, controller: Controller, q: int, rng: np.random.Generator, tail_factor: int) -> StepOutcome:
    """A step as the controller planned it; tail groups, and a fresh one, are `tail_factor` times as long as others."""
    decision = controller.decide(state, q)
    fresh = SETUP.groups - q + decision.q_next
    plan = plan_step(
        step=1,
        responses=SETUP.responses,
        tail=[(f"t{i}", 2) for i in range(q)],
        fresh=[f"f{i:03}" for i in range(fresh)],
        q_next=decision.q_next,
        m=decision.m,
        replicas=[f"r{i}" for i in range(SETUP.replicas)],
    )
    kept = plan.groups[: SETUP.groups]
    consumed = []
    for group in kept:
        lengths = rng.integers(90, 110, SETUP.responses) * (tail_factor if group.tail or group.uid == "f000" else 1)
        consumed.append(GroupOutcome(group.uid, group.tail, tuple(lengths.tolist()), 2.0 if group.tail else 1.0))
    left = tuple(group.uid for group in plan.groups[SETUP.groups :])
    return StepOutcome(plan, tuple(consumed), left, 1.0, 2.0 if q else 0.0, 1.0, 2.0 if q else 1.0)


def drive(controller: Controller, steps: int, tail_factor: int = 10) -> tuple[list[Allocation], object]:
    """(q, m) of each step, and the last state."""
    rng = np.random.default_rng(0)
    state = controller.start(SETUP)
    q, path = controller.initial(state).q, []
    for _ in range(steps):
        outcome = step_of(state, controller, q, rng, tail_factor)
        path.append(outcome.plan.allocation)
        state, q = controller.observe(state, outcome), outcome.plan.q_next
    return path, state


def controllers(start: Allocation, **tuning: object) -> list[Controller]:
    return [
        Hierarchical(start, SLOWING, Tuning(**tuning)),  # type: ignore[arg-type]
        Joint(start, SLOWING, Tuning(**tuning)),  # type: ignore[arg-type]
    ]


def test_every_controller_has_a_name() -> None:
    assert set(CONTROLLERS) == {"hierarchical", "joint", "fixed"}


def test_a_fixed_controller_never_moves() -> None:
    path, _ = drive(Fixed(Allocation(3, 2)), 5)
    assert path == [Allocation(3, 2)] * 5


@pytest.mark.parametrize("which", [0, 1])
def test_the_same_outcomes_give_the_same_decisions_also_through_a_checkpoint(which: int) -> None:
    controller = controllers(Allocation(8, 2))[which]
    path, state = drive(controller, 12)
    again, same = drive(pickle.loads(pickle.dumps(controller)), 12)
    assert path == again
    loaded = pickle.loads(pickle.dumps(state))
    assert controller.decide(loaded, 3) == controller.decide(same, 3)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("start", [Allocation(1, 1), Allocation(16, 3), UNIFORM])
def test_q_never_changes_by_more_than_the_bound_but_to_and_from_uniform(which: int, start: Allocation) -> None:
    path, _ = drive(controllers(start, max_change=2)[which], 40)
    for before, after in itertools.pairwise(path):
        assert abs(after.q - before.q) <= 2 or 0 in (before.q, after.q)


@pytest.mark.parametrize("which", [0, 1])
def test_q_is_held_for_one_step_after_an_increase_and_two_after_a_decrease(which: int) -> None:
    for start in (Allocation(1, 2), Allocation(16, 2)):
        path, _ = drive(controllers(start, max_change=1)[which], 40)
        changes = [(i, b.q - a.q) for i, (a, b) in enumerate(itertools.pairwise(path)) if a.q != b.q]
        assert changes
        for (first, change), (second, _) in itertools.pairwise(changes):
            assert second - first >= (2 if change > 0 else 3)


def test_the_hierarchical_controller_moves_one_replica_at_a_time() -> None:
    path, _ = drive(Hierarchical(Allocation(2, 1), SLOWING), 60)
    for before, after in itertools.pairwise(path):
        assert abs(after.m - before.m) <= 1 or UNIFORM in (before, after) or 0 in (before.m, after.m)


@pytest.mark.parametrize("which", [0, 1])
def test_a_workload_without_a_tail_leads_to_uniform_routing(which: int) -> None:
    path, _ = drive(controllers(Allocation(4, 2))[which], 40, tail_factor=1)
    assert path[-1] == UNIFORM


@pytest.mark.parametrize("which", [0, 1])
def test_from_uniform_routing_a_tail_leads_back_to_two_pools(which: int) -> None:
    path, _ = drive(controllers(UNIFORM, by_group=True)[which], 20)
    assert path[0] == UNIFORM and any(at.q and at.m for at in path)


def test_the_hierarchical_controller_enters_with_one_replica() -> None:
    path, _ = drive(Hierarchical(UNIFORM, SLOWING, Tuning(by_group=True)), 20)
    assert next(at.m for at in path if at.m) == 1


@pytest.mark.parametrize("which", [0, 1])
def test_no_controller_goes_where_a_replica_lacks_room(which: int) -> None:
    narrow = replace(SETUP, capacity=48)  # uniform needs 32; one bulk replica would need 128
    controller = controllers(Allocation(2, 1))[which]
    tuning = controller.tuning  # type: ignore[attr-defined]
    assert not tuning.has_room(narrow, Allocation(2, 3)) and tuning.has_room(narrow, Allocation(2, 1))
    rng, state, q = np.random.default_rng(0), controller.start(narrow), 2
    for _ in range(25):
        outcome = step_of(state, controller, q, rng, 10)
        state, q = controller.observe(state, outcome), outcome.plan.q_next
        decided = controller.decide(state, q)
        assert decided.m == 0 or tuning.has_room(narrow, Allocation(max(decided.q_next, 1), decided.m))


def test_where_no_pair_has_room_the_tail_runs_among_the_others() -> None:
    tight = replace(SETUP, capacity=36)  # uniform needs 32, with a tail set on its way 34; any bulk pool needs 43
    controller = Joint(Allocation(2, 1), SLOWING)
    outcome = step_of(controller.start(tight), controller, 2, np.random.default_rng(0), 10)
    assert controller.decide(controller.observe(controller.start(tight), outcome), outcome.plan.q_next).m == 0


@pytest.mark.parametrize("which", [0, 1])
def test_where_the_start_has_room_but_no_change_of_q_has_a_controller_stays_or_goes_to_uniform(which: int) -> None:
    narrow = replace(SETUP, capacity=43)  # of the three bulk replicas each needs 43, and one group more would need 44
    start = Allocation(1, 1)
    controller = controllers(start)[which]
    assert not controller.tuning.has_room(narrow, start)  # type: ignore[attr-defined]
    rng, state, q = np.random.default_rng(0), controller.start(narrow), 1
    for _ in range(25):
        outcome = step_of(state, controller, q, rng, 10)
        assert outcome.plan.allocation in (start, Allocation(1, 0), UNIFORM)
        state, q = controller.observe(state, outcome), outcome.plan.q_next


@pytest.mark.parametrize("which", [0, 1])
def test_reports_name_what_is_proposed_and_predicted(which: int) -> None:
    controller = controllers(Allocation(4, 2))[which]
    _, state = drive(controller, 12)
    report = controller.report(state)
    assert report["predicted_s"] > 0 and report["tau_1"] == pytest.approx(float(SLOWING.tau(1)))
    assert {"proposed_q", "proposed_m"} <= set(report)


@pytest.mark.parametrize("which", [0, 1])
def test_without_a_decode_model_nothing_moves(which: int) -> None:
    """Outcomes without records say nothing of decoding times, so there is no estimate."""
    controller = [Hierarchical(Allocation(4, 2)), Joint(Allocation(4, 2))][which]
    path, _ = drive(controller, 10)
    assert path == [Allocation(4, 2)] * 10


@pytest.mark.parametrize("setup", [Setup(1, 4, 4), Setup(8, 4, 1)])
@pytest.mark.parametrize("kind", [Hierarchical, Joint])
def test_one_group_or_one_replica_stays_uniform(setup: Setup, kind: type) -> None:
    controller = kind(UNIFORM, SLOWING)
    state = controller.start(setup)
    plan = plan_step(
        step=1,
        responses=4,
        tail=[],
        fresh=[f"f{i}" for i in range(setup.groups)],
        q_next=0,
        m=0,
        replicas=[f"r{i}" for i in range(setup.replicas)],
    )
    groups = tuple(GroupOutcome(g.uid, False, (5, 6, 7, 8), 1.0) for g in plan.groups)
    state = controller.observe(state, StepOutcome(plan, groups, (), 1.0, 0.0, 1.0, 1.0))
    assert controller.decide(state, 0).q_next == 0 and controller.decide(state, 0).m == 0


def test_only_the_latest_consumed_groups_are_evidence() -> None:
    rng = np.random.default_rng(0)
    fixed = Fixed(Allocation(2, 1))
    outcome = step_of(None, fixed, 2, rng, 10)
    evidence = no_evidence(SETUP.responses, FLAT)
    for _ in range(3):
        evidence = evidence.add(outcome, keep_groups=40)
    assert evidence.lengths.shape == (40, SETUP.responses)
    consumed = {group.lengths for group in outcome.consumed}
    assert {tuple(row) for row in evidence.lengths.tolist()} <= consumed


@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 7), (1, 32), (1, 2048), (3, 5)])
def test_a_grid_has_both_ends_and_every_small_number(least: int, most: int) -> None:
    grid = spread(least, most)
    assert grid[0] == least and grid[-1] == most and list(grid) == sorted(set(grid))
    assert set(range(least, min(most, 8) + 1)) <= set(grid)
    assert len(grid) < 45


def test_at_most_half_of_the_groups_are_isolated() -> None:
    assert [largest_q(Setup(n, 8, 4)) for n in (2, 3, 64)] == [1, 1, 32]
