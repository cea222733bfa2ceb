"""Fig. D.1: the gain of fixed isolation, a tenth of the groups on a fixed split, over the strength of the tail.

It pays between two ends: with too little tail work the tail pool idles and the bulk pool lacks its replicas; with too
much the tail pool is overloaded. Where tau does not depend on the batch there is no low-concurrency advantage to gain.
"""

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.statistics import speedup
from tailsieve_rl.simulation.experiments.steady import Floats, bulk_run, pools
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.workloads import Drift, Drifting, Workload, tail_strength
from tailsieve_rl.simulation.workloads.drift import constant
from tailsieve_rl.simulation.workloads.tail_strength import MEDIAN, P90, stretch

DESCRIPTION = "Fig. D.1: where fixed isolation of the longest tenth gains, and where it does not"
MODEL = "qwen3.5-4b"
GROUPS, STEPS = 64, 30
Q = round(0.1 * GROUPS)
M = 2
RATIOS = (1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, P90 / MEDIAN, 4.5, 6.0)
"""P90 over median, as A.5 strengthens a tail."""
REGIMES = {
    "tail workload too small": (1.05, False),
    "good": (1.5, False),
    "tail route overloaded": (6.0, False),
    "no low-concurrency advantage": (1.5, True),
}
"""Regime -> its ratio, and whether tau is flat."""
PARTS = ("uniform_by_group_s", "uniform_by_request_s", "tail_s", "bulk_s", "step_s")
PROXY_PARTS = ("work_share", "advantage_s", "penalty_s")
PROXY_STEPS = 10


def run(options: Options) -> Results:
    seeds = options.seeds(20)
    curves = {flat: [at_strength(ratio, flat, seeds) for ratio in RATIOS] for flat in (False, True)}
    found = [
        {"name": name, **next(row for row in curves[flat] if row["p90_over_p50"] == ratio)}
        for name, (ratio, flat) in REGIMES.items()
    ]
    for regime in found:
        options.progress(f"{regime['name']}: {regime['speedup']:.3f}x")
    return {
        "model": MODEL,
        "setup": {"groups": GROUPS, "responses": RESPONSES, "replicas": replicas(MODEL), "q": Q, "m": M},
        "seeds": len(seeds),
        "steps": STEPS,
        "regimes": found,
        "curve": curves[False],
        "curve_with_flat_tau": curves[True],
    }


def strengthened(ratio: float, seed: int) -> Workload:
    """The workload of A.5 at any P90 over median."""
    return Drifting(
        tail_strength("real", seed, RESPONSES).workload, constant(Drift(stretch=stretch(ratio))), MEDIAN, ""
    )


def at_strength(ratio: float, flat: bool, seeds: range, steps: int = STEPS) -> dict[str, Any]:
    """Times, gain and the proxy's parts: means over the seeds of (6, 2) against uniform routing.

    Args:
        ratio: P90 over median.
        flat: tau is that of a lone request at any batch.
        seeds: of the prompt streams.
        steps: of each.
    """
    tau = profile(MODEL).table(2 * GROUPS * RESPONSES)
    if flat:
        tau = np.where(np.arange(len(tau)) > 0, tau[1], 0.0)
    rows = np.array([_of_seed(strengthened(ratio, seed), tau, steps) for seed in seeds])
    by_group_s, by_request_s, _, _, step_s = rows[:, : len(PARTS)].T.tolist()
    gain, own = speedup(by_group_s, step_s), speedup(by_request_s, step_s)
    return {
        "p90_over_p50": ratio,
        "flat_tau": flat,
        **dict(zip((*PARTS, *PROXY_PARTS), rows.mean(axis=0).tolist(), strict=True)),
        "speedup": gain.value,
        "ci95": gain.interval,
        "over_uniform_by_request": own.value,
    }


def _of_seed(workload: Workload, tau: Floats, steps: int) -> list[float]:
    """PARTS and PROXY_PARTS of one prompt stream, means of a step."""
    stream = pools(workload, GROUPS, steps + 1)
    uniform = [bulk_run(stream, replicas(MODEL), tau, by_group).cutoff_s(0)[1:] for by_group in (True, False)]
    bulk = bulk_run(stream, replicas(MODEL) - M, tau)
    proxy = bulk.proxy(Q, M, replicas(MODEL), tau, PROXY_STEPS)
    times = (*uniform, bulk.tail_s(Q, M, tau)[:-1], bulk.cutoff_s(Q)[1:], bulk.step_s(Q, M, tau))
    share = proxy.work.mean() / stream.first.sum(axis=(1, 2)).mean()
    return [*(float(time.mean()) for time in times), float(share), *map(_mean, (proxy.advantage_s, proxy.penalty_s))]


def _mean(values: Floats) -> float:
    return float(values.mean())


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "regimes.png"
    with figure(path, columns=3, size=(4.2, 3.3)) as axes:
        _draw_curves(axes[0][0], results)
        names = [fill(regime["name"], 16) for regime in results["regimes"]]
        _draw_times(axes[0][1], results["regimes"], names)
        _draw_parts(axes[0][2], results["regimes"], names)
    return [path]


def _draw_curves(axes: Any, results: Results) -> None:
    for key, colour, label in (
        ("curve", "tail", "modelled tau"),
        ("curve_with_flat_tau", "uniform", "flat tau"),
    ):
        rows = results[key]
        ratios, gains = [row["p90_over_p50"] for row in rows], [row["speedup"] for row in rows]
        low, high = np.array([row["ci95"] for row in rows]).T
        axes.fill_between(ratios, low, high, color=COLOURS[colour], alpha=0.2, linewidth=0)
        axes.plot(ratios, gains, color=COLOURS[colour], label=label)
    for regime in results["regimes"]:
        axes.plot(regime["p90_over_p50"], regime["speedup"], "o", color="black", markersize=5)
        at = (regime["p90_over_p50"], regime["speedup"])
        side, shift = ("right", -4) if at[0] > 4 else ("left", 4)
        axes.annotate(regime["name"], at, (shift, 7), textcoords="offset points", fontsize=7, ha=side)
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 1.5, 2, 3, 4, 6], ["1", "1.5", "2", "3", "4", "6"])
    axes.set(xlabel="strength of the tail, P90 / P50", ylabel="speedup over uniform (by group)")
    axes.set_title(f"q = {results['setup']['q']}, m = {results['setup']['m']} of {results['setup']['replicas']}")
    axes.legend(fontsize=7, loc="lower right")


def _draw_times(axes: Any, regimes: list[dict[str, Any]], names: list[str]) -> None:
    for offset, key, colour in (
        (-0.25, "uniform_by_group_s", "uniform"),
        (0, "bulk_s", "bulk"),
        (0.25, "tail_s", "tail"),
    ):
        shares = [regime[key] / regime["uniform_by_group_s"] for regime in regimes]
        axes.bar(np.arange(len(names)) + offset, shares, 0.23, color=COLOURS[colour], label=key.split("_")[0])
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set(ylabel="time, share of uniform", ylim=(0, 1.35))
    axes.set_title("Which pool binds")
    axes.legend(fontsize=7, ncols=3, loc="upper center")


def _draw_parts(axes: Any, regimes: list[dict[str, Any]], names: list[str]) -> None:
    for key, sign, colour, label in (
        ("advantage_s", 1, "good", "early advantage"),
        ("penalty_s", -1, "tail", "late penalty"),
    ):
        heights = [sign * regime[key] / regime["uniform_by_group_s"] for regime in regimes]
        axes.bar(range(len(names)), heights, 0.5, color=COLOURS[colour], label=label)
    for place, regime in enumerate(regimes):
        top = regime["advantage_s"] / regime["uniform_by_group_s"]
        axes.annotate(
            f"tail work {regime['work_share']:.0%}",
            (place, top),
            (0, 3),
            textcoords="offset points",
            fontsize=7,
            ha="center",
        )
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set(ylabel="proxy, multiples of the uniform time")
    axes.set_title("The proxy's parts")
    axes.margins(y=0.15)
    axes.legend(fontsize=7, loc="upper right")
