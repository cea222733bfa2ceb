"""Fig. 6b: where the controllers go from very different starts, and what the way costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.routing.allocation import UNIFORM, Allocation
from tailsieve_rl.routing.control import Controller, Hierarchical, Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies import Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES, measure
from tailsieve_rl.simulation.experiments.static import best_static, static_step_s
from tailsieve_rl.simulation.experiments.statistics import mean_of
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.run import Simulation
from tailsieve_rl.simulation.workloads import WORKLOADS, code_workload

DESCRIPTION = (
    "Fig. 6b: q and m from different starts, R = 4 and 8, both controllers; the list of workloads never to lose on"
)

GROUPS = 64
REPEATS = 20
STEPS = 60
SETTLED = 40
"""Step from which a run counts as steady: from q = N / 2, two groups every third step, it takes as long to q = 4."""
PROPOSED_AFTER = 4
MODELS = ("qwen3.5-35b-a3b-tp2", "qwen3.5-4b")
SAFE = (
    "math",
    "code",
    "uniform_lengths",
    "light_tail",
    "kodcode_like",
    "sky_t1",
    "math_growing",
    "math_shrinking",
    "math_swinging",
)
"""Workloads on which TailSieve must never be slower than uniform by more than 2 %."""


def run(options: Options) -> Results:
    seeds = options.seeds(REPEATS)
    settings = []
    for name in MODELS:
        settings.append(_setting(name, seeds))
        options.progress(f"{name}: best static {settings[-1]['best_static']}")
    safety = []
    for workload in SAFE:
        safety += [_safety(name, workload, seeds) for name in MODELS]
        options.progress(f"{workload}: {', '.join(format(s['speedup'], '.3f') for s in safety[-len(MODELS) :])}x")
    return {**settings[-1], "settings": settings, "safety": safety}


def starts(setup: Setup) -> dict[str, list[tuple[Allocation, bool]]]:
    """Starts of the inner loop alone (m fixed, paper 4.4) and of both loops; True where m may change."""
    middle = setup.replicas // 2
    usual = default_allocation(setup).q
    inner = [(Allocation(q, middle), False) for q in (1, usual, setup.groups // 2)]
    whole = [(UNIFORM, True), (Allocation(usual, setup.replicas - 1), True), (Allocation(usual, middle), True)]
    far = [(Allocation(1, middle), True), (Allocation(setup.groups // 2, setup.replicas - 1), True)]
    return {"hierarchical": [*inner, *whole, *far], "joint": [*whole, *far]}


def controller(name: str, start: Allocation, model: DecodeModel, outer: bool) -> Controller:
    """A controller by name, at a start."""
    return Joint(start, model) if name == "joint" else Hierarchical(start, model, outer=outer)


def _setting(name: str, seeds: range) -> dict[str, Any]:
    setup, model = Setup(GROUPS, RESPONSES, replicas(name)), profile(name)
    streams = [code_workload(seed, RESPONSES, evolving=False) for seed in seeds]
    best = best_static(setup, streams, model, STEPS)
    best_s = static_step_s(best, setup, streams, model, STEPS)
    steady_s = static_step_s(best, setup, streams, model, STEPS - SETTLED, converge=SETTLED)
    runs = []
    for kind, places in starts(setup).items():
        for start, outer in places:
            policy = TwoPool(controller(kind, start, model, outer))
            steps = [list(Simulation(setup, stream, model, policy).steps(STEPS + 1))[:-1] for stream in streams]
            step_s = np.array([[step.outcome.gen_time_s for step in run] for run in steps])
            runs.append(
                {
                    "controller": kind,
                    "outer": outer,
                    "q0": start.q,
                    "m0": start.m,
                    "q": [step.outcome.plan.q for step in steps[0]],
                    "m": [step.outcome.plan.m for step in steps[0]],
                    "step_s": step_s.mean(axis=0).tolist(),
                    "steady_loss": _loss(step_s[:, SETTLED:].mean(axis=1), steady_s),
                    "proposal_loss": _proposal_loss(steps, setup, streams, model, best_s) if outer else None,
                }
            )
    uniform = [measure(Uniform(), setup, stream, model, 1, STEPS).step_s for stream in streams]
    return {
        "model": name,
        "replicas": setup.replicas,
        "best_static": {"q": best.q, "m": best.m, "step_s": float(np.mean(best_s))},
        "uniform_s": float(np.mean(uniform)),
        "runs": runs,
    }


def _loss(step_s: Any, best_s: Sequence[float]) -> dict[str, Any]:
    """How much slower than the best static pair, as a share: mean over streams and its interval."""
    loss = mean_of(np.asarray(step_s) / np.asarray(best_s) - 1.0)
    return {"value": loss.value, "ci95": loss.interval}


def _proposal_loss(
    steps: Any, setup: Setup, streams: Sequence[Any], model: DecodeModel, best_s: Sequence[float]
) -> dict[str, Any] | None:
    """What is lost by holding, from the start, the pair that each stream's run had proposed after four steps."""
    reports = [run[PROPOSED_AFTER].report for run in steps]
    proposed = [
        Allocation(int(report["proposed_q"]), int(report["proposed_m"])) if "proposed_q" in report else None
        for report in reports
    ]
    known = [at for at in proposed if at is not None]
    if len(known) < len(proposed):
        return None
    times = {at: float(np.mean(static_step_s(at, setup, streams, model, STEPS))) for at in set(known)}
    loss = mean_of(np.array([times[at] for at in known]) / float(np.mean(best_s)) - 1.0)
    return {"value": loss.value, "ci95": loss.interval, "proposed": [[at.q, at.m] for at in known]}


def _safety(name: str, workload: str, seeds: range) -> dict[str, Any]:
    """The joint controller from its default start against uniform groups, the first steps included."""
    setup, model = Setup(GROUPS, RESPONSES, replicas(name)), profile(name)
    streams = [WORKLOADS[workload](seed, RESPONSES) for seed in seeds]
    policy = TwoPool(Joint(default_allocation(setup), model))
    base = [measure(Uniform(), setup, stream, model, 0, STEPS).step_s for stream in streams]
    ours = [measure(policy, setup, stream, model, 0, STEPS).step_s for stream in streams]
    gain = mean_of(np.array(base) / np.array(ours))
    return {"model": name, "workload": workload, "speedup": gain.value, "ci95": gain.interval}


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "convergence.png"
    kinds = (("hierarchical", False), ("hierarchical", True), ("joint", True))
    titles = ("inner loop alone", "hierarchical", "joint")
    with figure(path, rows=2 * len(results["settings"]), columns=len(kinds), size=(3.6, 2.1)) as axes:
        for row, setting in enumerate(results["settings"]):
            for column, (kind, outer) in enumerate(kinds):
                above, below = axes[2 * row, column], axes[2 * row + 1, column]
                for run_ in setting["runs"]:
                    if (run_["controller"], run_["outer"]) == (kind, outer):
                        label = f"({run_['q0']}, {run_['m0']})"
                        above.plot(run_["q"], label=label, linewidth=1.4)
                        below.plot(run_["m"], linewidth=1.4)
                best = setting["best_static"]
                above.axhline(best["q"], color=COLOURS["uniform"], linestyle=":")
                below.axhline(best["m"], color=COLOURS["uniform"], linestyle=":")
                above.set_title(f"{titles[column]}, R = {setting['replicas']}")
                above.legend(fontsize=6, title="start (q, m)", title_fontsize=6)
                below.set_xlabel("step")
                below.set_yticks(range(0, setting["replicas"], max(1, setting["replicas"] // 4)))
                if not column:
                    above.set_ylabel("q, groups")
                    below.set_ylabel("m, replicas")
    return [path]
