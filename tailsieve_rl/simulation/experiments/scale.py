"""How long a decision takes as the system grows, N to 4096 groups on R to 512 replicas, and what it gains there.

A decision is all that a controller does between two steps: it takes in the outcome and answers with (q, m).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from types import MappingProxyType
from typing import Any

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Controller, Hierarchical, Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.policies import Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.routing.setup import Decision
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES, measure
from tailsieve_rl.simulation.experiments.statistics import speedup
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.workloads import Workload, code_workload

DESCRIPTION = "decision time and gain of both controllers, N to 4096 groups on R to 512 replicas"
MODEL = "qwen3.5-4b"
SIZES = ((64, 8), (256, 32), (1024, 128), (4096, 512))
"""N and R: eight groups a replica, as in the paper's setup."""
CONTROLLERS: Mapping[str, Callable[[Allocation, DecodeModel], Controller]] = MappingProxyType(
    {"hierarchical": Hierarchical, "joint": Joint}
)
TARGET_S = {("hierarchical", 64): 0.005, ("joint", 64): 0.05, ("hierarchical", 4096): 1.0, ("joint", 4096): 1.0}
CONVERGE, COUNT = 24, 12
"""Steps before and while the gain is measured; above N = 1024 half as many, and fewer seeds: a large step says more."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A controller, with the time of each of its decisions.

    Attributes:
        controller: what decides.
        cpu_s: seconds of this process, which others on the machine do not lengthen.
        wall_s: seconds of the clock.
    """

    controller: Controller
    cpu_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    def start(self, setup: Setup) -> Any:
        return self.controller.start(setup)

    def initial(self, state: Any) -> Allocation:
        return self.controller.initial(state)

    def decide(self, state: Any, q: int) -> Decision:
        return self.controller.decide(state, q)

    def observe(self, state: Any, outcome: StepOutcome) -> Any:
        wall, cpu = perf_counter(), process_time()
        seen = self.controller.observe(state, outcome)
        self.cpu_s.append(process_time() - cpu)
        self.wall_s.append(perf_counter() - wall)
        return seen

    def report(self, state: Any) -> Mapping[str, float]:
        return self.controller.report(state)


def run(options: Options) -> Results:
    rows: list[dict[str, Any]] = []
    for groups, replicas in SIZES:
        seeds = options.seeds({64: 8, 256: 4, 1024: 3}.get(groups, 1))
        steps = (CONVERGE, COUNT) if groups < 1024 else (12, 4)
        rows += at_size(groups, replicas, seeds, *steps)
        for row in rows[-len(CONTROLLERS) :]:
            options.progress(
                f"N = {groups}, R = {replicas}, {row['controller']}: {1000 * row['decision_cpu_s']:.0f} ms, "
                f"{row['speedup']:.3f}x"
            )
    return {"model": MODEL, "workload": "code", "responses": RESPONSES, "sizes": rows}


def at_size(groups: int, replicas: int, seeds: range, converge: int, count: int) -> list[dict[str, Any]]:
    """Both controllers, from the default start, against uniform routing by group on the same prompt streams."""
    setup, model = Setup(groups, RESPONSES, replicas), profile(MODEL)
    streams = [code_workload(seed, RESPONSES, evolving=False) for seed in seeds]
    uniform_s = [measure(Uniform(), setup, stream, model, converge, count).step_s for stream in streams]
    return [_row(name, setup, streams, uniform_s, converge, count) for name in CONTROLLERS]


def _row(
    name: str, setup: Setup, streams: Sequence[Workload], uniform_s: list[float], converge: int, count: int
) -> dict[str, Any]:
    model = profile(MODEL)
    timed = Timed(CONTROLLERS[name](default_allocation(setup), model))
    measured = [measure(TwoPool(timed), setup, stream, model, converge, count) for stream in streams]
    gain = speedup(uniform_s, [found.step_s for found in measured])
    return {
        "controller": name,
        "groups": setup.groups,
        "replicas": setup.replicas,
        "decision_cpu_s": median(timed.cpu_s),
        "decision_wall_s": median(timed.wall_s),
        "decisions": len(timed.cpu_s),
        "target_s": TARGET_S.get((name, setup.groups)),
        "uniform_s": uniform_s,
        "step_s": [found.step_s for found in measured],
        "q": measured[0].allocation.q,
        "m": measured[0].allocation.m,
        "speedup": gain.value,
        "ci95": gain.interval,
    }


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "scale.png"
    with figure(path, columns=2, size=(4.4, 3.3)) as axes:
        left, right = axes[0]
        for name, colour in (("hierarchical", COLOURS["bulk"]), ("joint", COLOURS["tailsieve"])):
            rows = [row for row in results["sizes"] if row["controller"] == name]
            sizes = [row["groups"] for row in rows]
            left.plot(sizes, [1000 * row["decision_cpu_s"] for row in rows], "o-", color=colour, label=name)
            aims = [(row["groups"], 1000 * row["target_s"]) for row in rows if row["target_s"]]
            left.plot(*zip(*aims, strict=True), "_", color=colour, markersize=16, markeredgewidth=2)
            right.plot(sizes, [row["speedup"] for row in rows], "o-", color=colour, label=name)
        for panel in (left, right):
            panel.set_xscale("log", base=2)
            panel.set_xticks(sizes, [f"{row['groups']}\n{row['replicas']}" for row in rows])
            panel.set_xlabel("groups N, replicas R")
            panel.legend(fontsize=7)
        left.set(yscale="log", ylabel="time of a decision, ms (dash: target)")
        left.set_title("A decision, CPU time")
        right.axhline(1.0, color=COLOURS["uniform"], linewidth=0.8)
        right.set(ylabel="speedup over uniform (by group)")
        right.set_title(f"The gain, {results['workload']}")
    return [path]
