"""Governed draft depths in closed loop: how soon they are at the best fixed pair, and how they follow acceptance."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Fixed
from tailsieve_rl.routing.control.governed_depth import GovernedDepths
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.plan import Pool, StepPlan
from tailsieve_rl.routing.policies import Setup, TwoPool
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.fixed_depths import Depths, depth_times
from tailsieve_rl.simulation.experiments.tables import FACTORIES
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import PROFILES, replicas
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import Workload

DESCRIPTION = "governed draft depths: loss against the best fixed pair by step, and under acceptance that falls"

GROUPS, MOST_DRAFTS = 64, 6
PAIRS = tuple(Depths(tail, bulk) for tail, bulk in product(range(MOST_DRAFTS + 1), repeat=2))
STEPS = 8
JUDGES, JUDGED = 3, 12
"""Prompt streams, other than the one that the depths were chosen on, and steps of each, that pairs are judged by."""
JUDGE_SEED = 1000
ACCEPTANCES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
DRAFTERS = (("mtp", None), ("dflash", None), ("mtp", MOST_DRAFTS))
"""Method, and drafts made in every step whatever is verified (vLLM's V2 runner); None: as many as are verified."""
FALL = tuple(np.linspace(0.8, 0.1, 21).tolist())
"""Acceptance by step: of a drafter that stays as it is while the policy trains."""


def run(options: Options, models: Sequence[str] = PROFILES, acceptances: Sequence[float] = ACCEPTANCES) -> Results:
    cells = []
    for name in models:
        for (method, runs), workload, acceptance in product(DRAFTERS, FACTORIES, acceptances):
            model = profile_with_drafts(name, method, range(1, MOST_DRAFTS + 1), acceptance, runs)
            about = {"model": name, "method": method, "all_drafted": runs is not None}
            for at in allocations(name):
                found = settling(at, _setup(name), model, workload, options.seed)
                cells.append({**about, "workload": workload, "acceptance": acceptance, "q": at.q, "m": at.m, **found})
        worst = max(cell["loss"][3] for cell in cells)
        options.progress(f"{name}: after three steps at most {100 * worst:.1f} % slower than the best pair")
    falls = [
        {"model": name, "q": at.q, "m": at.m, **falling(at, name, options.seed)}
        for name in dict.fromkeys((models[0], models[-1]))
        for at in allocations(name)[:2]
    ]
    return {"groups": GROUPS, "acceptance_by_step": FALL, "cells": cells, "falls": falls}


def allocations(name: str) -> tuple[Allocation, ...]:
    """Uniform routing, and the default tail set on a quarter and on half of the replicas."""
    return UNIFORM, Allocation(4, replicas(name) // 4), Allocation(4, replicas(name) // 2)


def settling(at: Allocation, setup: Setup, model: DecodeModel, workload: str, seed: int = 0) -> dict[str, Any]:
    """The depths of the first steps, and how much slower they are than the best pair and than no drafts."""
    stream = FACTORIES[workload](seed, RESPONSES, evolving=False)
    steps = list(Simulation(setup, stream, model, governed(at), records=True).steps(STEPS + 1))[:-1]
    chosen = [depths_of(step.outcome.plan) for step in steps]
    seconds = judged(at, setup, model, workload)
    best = min(seconds, key=lambda pair: seconds[pair])
    return {
        "best": list(best),
        "depths": [list(pair) for pair in chosen],
        "loss": [seconds[pair] / seconds[best] - 1 for pair in chosen],
        "over_none": [seconds[pair] / seconds[Depths(0, 0)] - 1 for pair in chosen],
    }


def falling(at: Allocation, name: str, seed: int = 0) -> dict[str, Any]:
    """The depths of MTP while its acceptance falls, step by step, and their loss."""
    setup, policy = _setup(name), governed(at)
    state, chosen, loss = policy.start(setup), [], []
    for step, acceptance in enumerate(FALL):
        model = profile_with_drafts(name, "mtp", range(1, MOST_DRAFTS + 1), acceptance)
        stream: Workload = FACTORIES["math"](seed + step, RESPONSES, evolving=False)
        resumed = Resumed(policy.policy, policy.controller, policy.min_acceptance, state=state)
        outcome = next(Simulation(setup, stream, model, resumed, records=True).steps(2)).outcome
        state = policy.observe(state, outcome)
        chosen.append(depths_of(outcome.plan))
        seconds = judged(at, setup, model, "math")
        loss.append(seconds[chosen[-1]] / min(seconds.values()) - 1)
    return {"depths": [list(pair) for pair in chosen], "loss": loss}


def judged(at: Allocation, setup: Setup, model: DecodeModel, workload: str) -> dict[Depths, float]:
    """Mean step time of every pair of depths, seconds."""
    times: dict[Depths, float] = dict.fromkeys(PAIRS, 0.0)
    for i in range(JUDGES):
        stream = FACTORIES[workload](JUDGE_SEED + i, RESPONSES, evolving=False)
        for (_, pair), seconds in depth_times([at], PAIRS, setup, stream, model, JUDGED).items():
            times[pair] += float(seconds.mean()) / JUDGES
    return {pair: seconds for pair, seconds in times.items() if seconds}


def governed(at: Allocation, **settings: Any) -> RouteDepth:
    """A fixed allocation with governed depths, whatever is accepted."""
    return RouteDepth(TwoPool(Fixed(at)), GovernedDepths(MOST_DRAFTS, **settings), min_acceptance=0.0)


def depths_of(plan: StepPlan) -> Depths:
    """That the pools of a step ran at."""
    tail, bulk = (plan.depth_of(pool) for pool in Pool)
    assert isinstance(tail, int) and isinstance(bulk, int)
    return Depths(tail, bulk)


@dataclass(frozen=True, slots=True)
class Resumed(RouteDepth):
    """Goes on from a state."""

    state: Any = None

    def start(self, setup: Setup) -> Any:
        return self.state


def _setup(name: str) -> Setup:
    return Setup(GROUPS, RESPONSES, replicas(name))


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "governed-depth.png"
    loss = 100 * np.array([cell["loss"] for cell in results["cells"]])
    falls = results["falls"]
    with figure(path, columns=1 + len(falls), size=(3.3, 2.8)) as axes:
        panel, steps = axes[0, 0], np.arange(1, loss.shape[1] + 1)
        panel.plot(steps, loss.max(axis=0), "o-", color=COLOURS["tail"], label="largest")
        panel.plot(steps, np.quantile(loss, 0.9, axis=0), "o-", color=COLOURS["oracle"], label="90 %")
        panel.plot(steps, loss.mean(axis=0), "o-", color=COLOURS["bulk"], label="mean")
        panel.axhline(3, color="black", linewidth=0.8, linestyle=":")
        panel.set(xlabel="step", ylabel="slower than the best pair, %", ylim=(0, 20))
        panel.set_title(f"{len(loss)} cells (modelled)")
        panel.legend()
        for panel, fall in zip(axes[0, 1:], falls, strict=True):
            steps = np.arange(1, len(fall["depths"]) + 1)
            for i, pool in enumerate(("tail", "bulk")[bool(fall["m"] == 0) :], start=int(fall["m"] == 0)):
                label = pool if fall["m"] else "all replicas"
                panel.step(steps, [pair[i] for pair in fall["depths"]], where="mid", color=COLOURS[pool], label=label)
            twin = panel.twinx()
            twin.plot(steps, results["acceptance_by_step"], color="black", linestyle=":", linewidth=1)
            twin.set(ylim=(0, 1), yticks=[])
            panel.set(xlabel="step (dotted: acceptance, 0 to 1)", ylabel="draft depth")
            panel.set_title(f"{fall['model']}, m = {fall['m']}", fontsize=8)
            panel.legend()
    return [path]
