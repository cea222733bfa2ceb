"""Table 2: routing at a fixed split with MTP or DFlash, over acceptance; and what depths by route add to one depth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.control import Joint
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth, DraftDepths
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.routing.policies.named import named_policy
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES, Measured, measure
from tailsieve_rl.simulation.experiments.tables import CONVERGE, FACTORIES, MEASURED, entry
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.profiles.drafters import Method
from tailsieve_rl.simulation.profiles.published import PUBLISHED
from tailsieve_rl.simulation.profiles.speculation import profile_with_drafts

DESCRIPTION = "Table 2: MTP and DFlash over acceptance, routed and under uniform routing; depths by route against one"

GROUPS, REPEATS = 64, 20
DEPTH_REPEATS = 6
"""Prompt streams of the depths by route, whose estimates take ten seconds for each."""
DRAFTS = 3
"""MTP has 3 speculative tokens in section 4.2, and DFlash a block of 4, whose first token is the model's own."""
ACCEPTANCES = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)
MOST_DRAFTS = 6
"""Deepest of the depths by route and of the uniform ones."""
DEPTH_ACCEPTANCES = (0.6, 0.8)

# (model, workload) -> speedups of section 4.2 over uniform groups without drafts.
PAPER: Mapping[tuple[str, str], Mapping[str, float]] = MappingProxyType(
    {
        ("qwen3.5-35b-a3b-tp2", "math"): {"routing": 1.219, "mtp": 2.390, "dflash": 2.181},
        ("qwen3.5-35b-a3b-tp2", "code"): {"routing": 1.560, "mtp": 2.586, "dflash": 2.378},
        ("qwen3.5-4b", "math"): {"routing": 1.199, "mtp": 2.414, "dflash": 2.091},
        ("qwen3.5-4b", "code"): {"routing": 1.310, "mtp": 1.921, "dflash": 1.774},
        ("qwen3.5-2b", "math"): {"routing": 1.144, "mtp": 2.161},
        ("qwen3.5-2b", "code"): {"routing": 1.143, "mtp": 2.349},
    }
)
ONLINE = frozenset({"tailsieve_batch_schedule", "tailsieve_route_depth"})
"""Estimate tau and acceptance from the run, as in training."""
METHODS: tuple[Method, ...] = ("mtp", "dflash")
MODELS = tuple(dict.fromkeys(model for model, _ in PAPER))


def run(
    options: Options,
    models: Sequence[str] = MODELS,
    acceptances: Sequence[float] = ACCEPTANCES,
    depth_acceptances: Sequence[float] = DEPTH_ACCEPTANCES,
    workloads: Sequence[str] = tuple(FACTORIES),
) -> Results:
    cells, depths = [], []
    for model in models:
        for workload in workloads:
            cell = _Cell(model, workload, options.seeds(REPEATS))
            for method in (m for m in METHODS if m in PAPER[model, workload]):
                cells.append(cell.curve(method, acceptances))
                options.progress(f"{model} {workload} {method}: the paper's speedup at {cells[-1]['met_at']}")
            few = _Cell(model, workload, options.seeds(DEPTH_REPEATS))
            for acceptance in depth_acceptances:
                depths.append(few.by_route(acceptance))
                gains = {name: round(found["speedup"], 2) for name, found in depths[-1]["policies"].items()}
                options.progress(f"{model} {workload} acceptance {acceptance}: {gains}")
    published = [
        {"method": p.method, "model": p.model, "workload": p.workload, "drafts": p.drafts, "tokens": p.tokens}
        | {"acceptance": p.acceptance, "source": p.source}
        for p in PUBLISHED
    ]
    return {"groups": GROUPS, "drafts": DRAFTS, "published": published, "cells": cells, "depths": depths}


class _Cell:
    """One model with one workload, on the same prompt streams throughout."""

    def __init__(self, model: str, workload: str, seeds: range):
        self.model, self.workload = model, workload
        self.streams = [FACTORIES[workload](seed, RESPONSES, evolving=False) for seed in seeds]
        self.setup = Setup(GROUPS, RESPONSES, replicas(model))
        plain = profile(model)
        self.uniform = self._measured(Uniform(), plain)
        self.baseline_s = [run.step_s for run in self.uniform]
        self.routing = entry(self._measured(self._fixed_split(plain), plain), self.baseline_s)

    def curve(self, method: Method, acceptances: Sequence[float]) -> dict[str, Any]:
        """DRAFTS drafts everywhere, over acceptance: with the fixed split's routing, and under uniform routing."""
        points = []
        for acceptance in acceptances:
            model = profile_with_drafts(self.model, method, [DRAFTS], acceptance)
            routed = self._measured(_drafting(self._fixed_split(model), DRAFTS), model)
            uniform = self._measured(_drafting(Uniform(), DRAFTS), model)
            points.append(
                {
                    "acceptance": acceptance,
                    "routed": entry(routed, self.baseline_s),
                    "uniform": entry(uniform, self.baseline_s),
                }
            )
        paper = PAPER[self.model, self.workload]
        known = [p.acceptance for p in PUBLISHED if p.method == method]
        met_at = _met_at(paper[method], points)
        return {
            **self._named(),
            "method": method,
            "paper": {"routing": paper["routing"], "drafts": paper[method]},
            "routing": self.routing,
            "points": points,
            "met_at": met_at,
            "published": [min(known), max(known)],
            "reached": met_at is not None and met_at <= max(known),
        }

    def by_route(self, acceptance: float) -> dict[str, Any]:
        """MTP at one depth for all, at a depth for each batch size, and at a depth for each pool.

        `..._all_drafted` is on engines that make all drafts in every step, as vLLM's V2 runner does, and verify some.
        """
        model = profile_with_drafts(self.model, "mtp", range(1, MOST_DRAFTS + 1), acceptance)
        start = default_allocation(self.setup)

        def named(name: str, model: DecodeModel = model) -> list[Measured]:
            policy = named_policy(name, self.setup, start, model, MOST_DRAFTS)
            return self._measured(policy, model, records=name in ONLINE)

        always = profile_with_drafts(self.model, "mtp", range(1, MOST_DRAFTS + 1), acceptance, runs=MOST_DRAFTS)
        uniform = {d: self._measured(_drafting(Uniform(), d), model) for d in range(MOST_DRAFTS + 1)}
        best = min(uniform, key=lambda depth: float(np.mean([run.step_s for run in uniform[depth]])))
        matched = DraftDepths(tail=DRAFTS + 1, bulk=DRAFTS - 1, uniform=DRAFTS)
        tailsieve = TwoPool(Joint(start, model))
        runs = {
            "uniform": uniform[0],
            "uniform_best_depth": uniform[best],
            "uniform_batch_schedule": named("uniform_batch_schedule"),
            "tailsieve": named("tailsieve"),
            "tailsieve_matched_depths": self._measured(RouteDepth(tailsieve, FixedDepths(matched)), model),
            "tailsieve_batch_schedule": named("tailsieve_batch_schedule"),
            "tailsieve_route_depth": named("tailsieve_route_depth"),
            "tailsieve_route_depth_all_drafted": named("tailsieve_route_depth", always),
        }
        return {
            **self._named(),
            "acceptance": acceptance,
            "best_uniform_depth": best,
            "policies": {name: entry(found, self.baseline_s) for name, found in runs.items()},
            "over_best_uniform_depth": {
                name: entry(found, [run.step_s for run in uniform[best]])["ci95"] for name, found in runs.items()
            },
        }

    def _named(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "workload": self.workload,
            "groups": GROUPS,
            "replicas": self.setup.replicas,
        }

    def _measured(self, policy: RoutingPolicy, model: DecodeModel, records: bool = False) -> list[Measured]:
        return [measure(policy, self.setup, s, model, CONVERGE, MEASURED, records) for s in self.streams]

    def _fixed_split(self, model: DecodeModel) -> RoutingPolicy:
        return named_policy("tailsieve_fixed", self.setup, default_allocation(self.setup), model)


def _drafting(policy: RoutingPolicy, depth: Depth) -> RoutingPolicy:
    return RouteDepth(policy, FixedDepths(DraftDepths(depth, depth, depth)), min_acceptance=0.0)


def _met_at(speedup: float, points: Sequence[Mapping[str, Any]]) -> float | None:
    """The least acceptance at which the routed curve meets a speedup; None if it never does."""
    acceptances = [point["acceptance"] for point in points]
    gains = [point["routed"]["speedup"] for point in points]
    if gains[-1] < speedup:
        return None
    return float(np.interp(speedup, gains, acceptances)) if gains[0] < speedup else acceptances[0]


_BARS = MappingProxyType(
    {
        "uniform_best_depth": COLOURS["uniform"],
        "uniform_batch_schedule": COLOURS["other"],
        "tailsieve_matched_depths": COLOURS["oracle"],
        "tailsieve_batch_schedule": COLOURS["bulk"],
        "tailsieve_route_depth": COLOURS["tailsieve"],
    }
)
_LINES = MappingProxyType({"mtp": ("MTP", COLOURS["tailsieve"]), "dflash": ("DFlash", COLOURS["bulk"])})


def draw(results: Results, out: Path) -> list[Path]:
    named = list(dict.fromkeys((cell["model"], cell["workload"]) for cell in results["cells"]))
    models, workloads = (list(dict.fromkeys(names)) for names in zip(*named, strict=True))
    curves, bars = out / "speculation.png", out / "route-depth.png"
    with figure(curves, rows=len(workloads), columns=len(models), size=(4.0, 2.8)) as axes:
        for cell in results["cells"]:
            _curve(axes[workloads.index(cell["workload"]), models.index(cell["model"])], cell)
        for panel in axes.flat:
            panel.set_ylim(bottom=0)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=4)
    with figure(bars, rows=len(workloads), columns=len(models), size=(4.0, 2.6)) as axes:
        for model, workload in named:
            found = [c for c in results["depths"] if (c["model"], c["workload"]) == (model, workload)]
            _depth_bars(axes[workloads.index(workload), models.index(model)], found)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return [curves, bars]


def _curve(panel: Any, cell: Mapping[str, Any]) -> None:
    label, colour = _LINES[cell["method"]]
    at = [point["acceptance"] for point in cell["points"]]
    panel.plot(at, [p["routed"]["speedup"] for p in cell["points"]], color=colour, label=f"routed, {label}")
    panel.plot(
        at, [p["uniform"]["speedup"] for p in cell["points"]], color=colour, ls="--", label=f"uniform groups, {label}"
    )
    panel.axhline(cell["paper"]["drafts"], color=colour, ls=":", label=f"paper's, {label}")
    low, high = cell["published"]
    panel.axvspan(low, high, color=colour, alpha=0.08, label=f"published, {label}")
    panel.set(xlabel="acceptance of a draft, given those before it", ylabel="speedup")
    panel.set_title(f"{cell['model']} (modelled), {cell['workload']}")


def _depth_bars(panel: Any, cells: Sequence[Mapping[str, Any]]) -> None:
    at = np.arange(len(cells))
    for i, (name, colour) in enumerate(_BARS.items()):
        found = [cell["policies"][name] for cell in cells]
        gains = np.array([one["speedup"] for one in found])
        reach = np.abs(np.array([one["ci95"] for one in found]).T - gains)
        place = at + (i - (len(_BARS) - 1) / 2) * 0.16
        panel.bar(place, gains - 1, 0.15, bottom=1, color=colour, yerr=reach, label=name, error_kw={"lw": 0.8})
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.set_xticks(at, [f"{cell['acceptance']:g}" for cell in cells])
    panel.set(xlabel="acceptance of MTP's drafts", ylabel="speedup over uniform")
    panel.set_title(f"{cells[0]['model']} (modelled), {cells[0]['workload']}")
