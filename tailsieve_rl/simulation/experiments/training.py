"""Fig. 7: thirty training steps under lengths that drift, with and without MTP; and D.1, where routing stops paying."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.control import Joint
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.statistics import mean_of, speedup
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import replicas
from tailsieve_rl.simulation.profiles.speculation import ACCEPTANCE, profile_with_drafts
from tailsieve_rl.simulation.run import SimulatedStep, Simulation
from tailsieve_rl.simulation.workloads import Drift, Drifting, Workload, math_workload, tail_strength
from tailsieve_rl.simulation.workloads.drift import slowly
from tailsieve_rl.simulation.workloads.tail_strength import MEDIAN

DESCRIPTION = "Fig. 7: 30 training steps with drifting lengths, with and without MTP; the transition to uniform of D.1"

GROUPS, REPEATS = 64, 20
STEPS = MappingProxyType({"math": 30, "fading": 60})
"""By schedule; the paper trains for 30 steps."""
MODELS = ("qwen3.5-2b", "qwen3.5-4b")

DEPTHS = DraftDepths(tail=4, bulk=2, uniform=3)
"""The paper's matched budget, d_bulk + d_tail = 2 d_base, with the base depth of section 4.2 under uniform routing."""
MOST_DRAFTS = 4

PAPER_STEP_S = MappingProxyType({"uniform": 119.34, "tailsieve": 82.49, "tailsieve_mtp": 46.61})
"""Section 4.5, Qwen3.5-2B, mean of steps 1 to 30."""

FADED = Drift(scale=0.6, stretch=0.01)
"""Lengths where the fading schedule ends: the tail is gone, half of the responses are alike. A stress case of ours: the
paper says that its controller left routing after step 8, not which lengths it saw. With five times this stretch one
tail replica still gains 2 to 3 %."""
FADING_STEPS = 8


def fading(seed: int) -> Drifting:
    """The math workload's real tail, nothing truncated, shrinks until hardly any is left."""
    return Drifting(tail_strength("real", seed, RESPONSES), slowly(Drift(), FADED, FADING_STEPS), MEDIAN, "fading")


def evolving(seed: int) -> Workload:
    """The math workload under a policy that changes."""
    return math_workload(seed, RESPONSES, evolving=True)


SCHEDULES: Mapping[str, Callable[[int], Workload]] = MappingProxyType({"math": evolving, "fading": fading})


def _tailsieve(setup: Setup, model: DecodeModel) -> RoutingPolicy:
    return TwoPool(Joint(default_allocation(setup), model))


def _drafting(depths: DraftDepths, policy: RoutingPolicy) -> RoutingPolicy:
    return RouteDepth(policy, FixedDepths(depths))


CONTENDERS: Mapping[str, Callable[[Setup, DecodeModel], RoutingPolicy]] = MappingProxyType(
    {
        "uniform": lambda setup, model: Uniform(),
        "tailsieve": _tailsieve,
        "uniform_mtp": lambda setup, model: _drafting(DEPTHS, Uniform()),
        "tailsieve_mtp": lambda setup, model: _drafting(DEPTHS, _tailsieve(setup, model)),
    }
)


def run(options: Options, models: Sequence[str] = MODELS) -> Results:
    cells = []
    for name in models:
        for schedule in SCHEDULES:
            cells.append(_cell(name, schedule, options.seeds(REPEATS), STEPS[schedule]))
            gains = {key: round(found["speedup"], 3) for key, found in cells[-1]["policies"].items()}
            options.progress(f"{name} {schedule}: {gains}")
    return {
        "groups": GROUPS,
        "responses": RESPONSES,
        "steps": "the run goes on after them: its own last step, which leaves nothing over, is not among them",
        "acceptance": ACCEPTANCE,
        "paper_step_s": dict(PAPER_STEP_S),
        "cells": cells,
    }


def _cell(name: str, schedule: str, seeds: range, steps: int) -> dict[str, Any]:
    model = profile_with_drafts(name, "mtp", range(1, MOST_DRAFTS + 1))
    setup = Setup(GROUPS, RESPONSES, replicas(name))
    runs = {
        key: [
            list(Simulation(setup, SCHEDULES[schedule](seed), model, contender(setup, model)).steps(steps + 1))[:steps]
            for seed in seeds
        ]
        for key, contender in CONTENDERS.items()
    }
    times = {key: np.array([[step.outcome.gen_time_s for step in run] for run in found]) for key, found in runs.items()}
    first_uniform = [_uniform_from(run) for run in runs["tailsieve_mtp"]]
    return {
        "model": name,
        "schedule": schedule,
        "replicas": setup.replicas,
        "policies": {key: _entry(found, times[key], times["uniform"]) for key, found in runs.items()},
        "mtp_transition": _transition(first_uniform, times["uniform_mtp"], times["tailsieve_mtp"]),
    }


def _entry(runs: Sequence[Sequence[SimulatedStep]], times: Any, baseline: Any) -> dict[str, Any]:
    """A contender's steps: means over prompt streams by step, and the mean of all steps."""
    gain, step_s = speedup(baseline.mean(axis=1), times.mean(axis=1)), mean_of(times.mean(axis=1))
    lengths = [
        [np.concatenate([group.lengths for group in step.outcome.consumed]).mean() for step in run] for run in runs
    ]
    plans = np.array([[(step.outcome.plan.q, step.outcome.plan.m) for step in run] for run in runs])
    return {
        "step_s": step_s.value,
        "step_s_ci95": step_s.interval,
        "speedup": gain.value,
        "ci95": gain.interval,
        "response_length_mean": np.mean(lengths, axis=0).tolist(),
        "q": plans[..., 0].tolist(),
        "m": plans[..., 1].tolist(),
        "step_s_by_stream": times.tolist(),
    }


def _uniform_from(run: Sequence[SimulatedStep]) -> int:
    """The first step from which on the run stays at uniform routing; one past the end if it does not."""
    routed = [step.outcome.plan.step for step in run if not step.outcome.plan.allocation.is_uniform]
    return 1 + max(routed, default=0)


def _transition(first_uniform: Sequence[int], uniform: Any, tailsieve: Any) -> dict[str, Any]:
    """D.1: with MTP on, TailSieve against uniform routing up to the transition to (0, 0), and after it."""
    steps = uniform.shape[1]
    routed = np.arange(1, steps + 1) < np.array(first_uniform)[:, None]

    def ratio(of: Any) -> dict[str, Any] | None:
        chosen = [k for k in range(len(of)) if of[k].any()]
        if not chosen:
            return None
        found = speedup([uniform[k][of[k]].mean() for k in chosen], [tailsieve[k][of[k]].mean() for k in chosen])
        return {"speedup": found.value, "ci95": found.interval, "streams": len(chosen)}

    return {
        "first_uniform_step": list(first_uniform),
        "streams_that_left": sum(at <= steps for at in first_uniform),
        "before": ratio(routed),
        "after": ratio(~routed),
    }


_LOOK = MappingProxyType(
    {
        "uniform": ("uniform", COLOURS["uniform"], "-"),
        "tailsieve": ("TailSieve", COLOURS["tailsieve"], "-"),
        "uniform_mtp": ("uniform + MTP", COLOURS["uniform"], "--"),
        "tailsieve_mtp": ("TailSieve + MTP", COLOURS["tailsieve"], "--"),
    }
)


def draw(results: Results, out: Path) -> list[Path]:
    paths = []
    for schedule, name in (("math", "training.png"), ("fading", "transition.png")):
        cells = [cell for cell in results["cells"] if cell["schedule"] == schedule]
        with figure(out / name, rows=len(cells), columns=3, size=(3.6, 2.6)) as axes:
            for row, cell in zip(axes, cells, strict=True):
                _row(row, cell)
            handles, labels = axes[0, 0].get_legend_handles_labels()
            axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        paths.append(out / name)
    return paths


def _row(axes: Any, cell: Mapping[str, Any]) -> None:
    for key, (label, colour, dash) in _LOOK.items():
        found = cell["policies"][key]
        seconds = np.mean(found["step_s_by_stream"], axis=0)
        steps = np.arange(1, len(seconds) + 1)
        axes[0].plot(steps, seconds, color=colour, linestyle=dash, label=label)
        axes[1].plot(steps, found["response_length_mean"], color=colour, linestyle=dash)
        if "tailsieve" in key:
            named = key == "tailsieve"
            for what, of in (("q", "groups"), ("m", "replicas")):
                colour = COLOURS["tail" if what == "q" else "bulk"]
                text = f"{what}, {of}" if named else None
                axes[2].plot(steps, np.mean(found[what], axis=0), color=colour, linestyle=dash, label=text)
    axes[0].set(ylabel="generation time, s", ylim=(0, None), xlabel="step")
    axes[1].set(ylabel="mean response, tokens", ylim=(0, None), xlabel="step")
    axes[2].set(ylabel="mean over streams", ylim=(0, 1.25 * axes[2].get_ylim()[1]), xlabel="step")
    axes[2].legend(loc="upper center", ncols=2)
    gain = {key: f"{found['speedup']:.2f}x" for key, found in cell["policies"].items()}
    axes[0].set_title(
        f"{cell['model']} (modelled): TailSieve {gain['tailsieve']},\n"
        f"MTP {gain['uniform_mtp']}, both {gain['tailsieve_mtp']}"
    )
    axes[1].set_title("Length of what was consumed")
    axes[2].set_title("Allocation")
