"""Appendix E: whether routing changes the distribution of lengths that is trained on.

The paper's ideal selector depends on the prompt alone, and then there is no bias. The real one is a race: it sees the
very lengths that it selects. A group that was left over because it was unlucky comes back shorter (regression to the
mean), which the paper's eta_t bounds. Both are measured here, on the same run.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.bias_regimes import SETUP, WINDOW, M, Q, Regime, drifting, stable, transition
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.composition import QUANTILES
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.workloads import code_workload, math_workload, sky_t1

DESCRIPTION = "Appendix E: bias of the mean length and of length intervals; stable, in transition, under drift"
STEPS = 2000
CHANGES = (1, 2, 4, 8)
CYCLES = 120
CHURN_STEPS = tuple(range(10, 210, 10))
"""Where `sky_t1` changes its checkpoint: every prompt's length changes at once, there and back."""
STREAMS = 6


def run(options: Options) -> Results:
    seed, times = options.seed, options.repeats or 1
    math = math_workload(seed, RESPONSES, evolving=False)
    code = code_workload(seed, RESPONSES, evolving=False)
    regimes = []
    for name, workload, q in (("math", math, Q), ("math", math, 3 * Q), ("code", code, Q)):
        regimes += stable(name, workload, q, STEPS * times)
        options.progress(f"{name}, q = {q}: {regimes[-2]['bias']:+.2%} as run, {regimes[-1]['bias']:+.2%} by prompt")
    for change in CHANGES:
        regimes += transition(math, change, CYCLES * times)
        options.progress(f"D = {change}: {regimes[-2]['bias']:+.1%} up, {regimes[-1]['bias']:+.1%} down")
    seeds = range(seed, seed + STREAMS)
    evolving = [math_workload(s, RESPONSES) for s in seeds]
    regimes.append(drifting("drift, math", evolving, range(1, 401), (50, 100, 200, 300)))
    churn = [sky_t1(s, RESPONSES) for s in seeds]
    regimes.append(drifting("drift, sky_t1 at its changes", churn, CHURN_STEPS, CHURN_STEPS[::2]))
    options.progress(f"sky_t1: {regimes[-1]['bias']:+.2%}, bound {regimes[-1]['bound'][0]:.2%}")
    setup = {"groups": SETUP.groups, "responses": RESPONSES, "replicas": SETUP.replicas, "m": M}
    return {"setup": setup, "quantiles": list(QUANTILES), "regimes": regimes}


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "bias.png"
    regimes = results["regimes"]
    with figure(path, columns=3, size=(4.6, 3.6)) as axes:
        _draw_stable(axes[0][0], [r for r in regimes if r["name"].startswith(("stable", "drift"))])
        _draw_transitions(axes[0][1], [r for r in regimes if r["name"].startswith(("increase", "decrease"))])
        _draw_intervals(axes[0][2], regimes[:2], results["quantiles"])
    return [path]


def _draw_stable(axes: Any, regimes: list[Regime]) -> None:
    for row, regime in enumerate(regimes):
        colour = COLOURS["good"] if "by prompt" in regime["name"] else COLOURS["tailsieve"]
        low, high = regime["ci95"]
        axes.plot([100 * low, 100 * high], [row, row], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot(100 * regime["bias"], row, "o", color=colour, markersize=4)
        if "bound" in regime:
            axes.plot([-100 * regime["bound"][0]], [row], "|", color=COLOURS["uniform"], markersize=12)
    axes.axvspan(-0.5, 0.5, color=COLOURS["good"], alpha=0.12, linewidth=0)
    labels = [r["name"].removeprefix("stable, ") for r in regimes]
    axes.set_yticks(range(len(regimes)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="bias of the mean length, % (grey: - (epsilon + eta))")
    axes.set_title("Stable (q, m): 95 % intervals")


def _draw_transitions(axes: Any, regimes: list[Regime]) -> None:
    largest = max(max(r["q"]) for r in regimes)
    for regime in regimes:
        up = regime["q"][1] > regime["q"][0]
        share = abs(regime["q"][1] - regime["q"][0]) / (largest - min(regimes[0]["q"]))
        steps = range(WINDOW)
        axes.plot(
            steps,
            [100 * s["bias"] for s in regime["series"][:WINDOW]],
            marker="o",
            markersize=3,
            color=COLOURS["tail"] if up else COLOURS["bulk"],
            alpha=0.25 + 0.75 * share,
            label=f"q {regime['q'][0]} to {regime['q'][1]}",
        )
    axes.axhline(0, color=COLOURS["uniform"], linewidth=0.8)
    axes.set_xticks(range(WINDOW))
    axes.set(xlabel="steps since the change", ylabel="bias of the mean length, %")
    axes.set_title("A change of q, N = 64")
    axes.legend(fontsize=7, ncols=2)


def _draw_intervals(axes: Any, regimes: list[Regime], quantiles: list[float]) -> None:
    labels = [f"{100 * low:.0f}-{100 * high:.0f}" for low, high in pairwise(quantiles)]
    for regime, colour, shift in zip(regimes, (COLOURS["tailsieve"], COLOURS["good"]), (-0.18, 0.18), strict=True):
        biases = [100 * at["bias"] for at in regime["intervals"]]
        reach = [100 * (at["ci95"][1] - at["bias"]) for at in regime["intervals"]]
        places = np.arange(len(labels)) + shift
        label = regime["name"].removeprefix("stable, ")
        axes.bar(places, biases, 0.34, yerr=reach, color=colour, label=label, error_kw={"elinewidth": 1})
    axes.axhspan(-0.5, 0.5, color=COLOURS["good"], alpha=0.12, linewidth=0)
    axes.set_xticks(range(len(labels)), labels)
    axes.set(xlabel="length interval, percentiles of the population", ylabel="bias, % of all responses")
    axes.set_title("Length intervals")
    axes.legend(fontsize=7)
