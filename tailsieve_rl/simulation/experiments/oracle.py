"""Fig. 2: the exact optimum of one group of 100 requests on two replicas, and top-k isolation beside it."""

from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.routing.makespan import completion_times, replica_time
from tailsieve_rl.routing.oracle import best_top_k, optimal_split, top_k_times
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.request_groups import (
    PAPER_SHAPE,
    SHAPES,
    random_uniform_time,
    request_group,
)
from tailsieve_rl.simulation.figures import COLOURS, figure

DESCRIPTION = "Fig. 2: the optimal assignment of 100 requests to two replicas, and step time against k of top-k"

CANDIDATES = 21
"""Groups of which the one with the median gap of top-k to the optimum is shown: neither the kindest nor the worst."""
DRAWS = 200
"""Random halves that the uniform line is the mean of."""


def run(options: Options) -> Results:
    tau = SHAPES[PAPER_SHAPE]()
    candidates = [request_group(options.seed, index) for index in range(options.repeats or CANDIDATES)]
    found = [best_top_k(given, tau).time_s / optimal_split(given, tau).time_s for given in candidates]
    index = int(np.argsort(found, kind="stable")[len(found) // 2])
    lengths = candidates[index]
    optimum, isolation = optimal_split(lengths, tau), best_top_k(lengths, tau)
    rng = np.random.default_rng(options.seed)
    sides = {}
    for side, chosen in (("tail", optimum.tail), ("bulk", optimum.bulk)):
        given = lengths[list(chosen)]
        sides[side] = {
            "lengths": given.tolist(),
            "completion_s": completion_times(given, tau).tolist(),
            "time_s": float(replica_time(given, tau)),
        }
    return {
        "model": PAPER_SHAPE,
        "group": index,
        "gap": isolation.time_s / optimum.time_s - 1,
        "tau": tau.tolist(),
        "optimum_s": optimum.time_s,
        "optimum": sides,
        "states": optimum.states,
        "top_k_times_s": top_k_times(lengths, tau).tolist(),
        "top_k_s": isolation.time_s,
        "k": isolation.k,
        "random_uniform_s": float(np.mean([random_uniform_time(lengths, tau, rng) for _ in range(DRAWS)])),
        "paper": {"tail_requests": 4, "bulk_requests": 96, "top_k_s": 54.84},
    }


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "oracle.png"
    with figure(path, columns=3, size=(3.7, 3.1)) as axes:
        _assignment(axes[0, 0], axes[0, 1], results)
        _top_k(axes[0, 2], results)
    return [path]


def _assignment(lengths: Any, times: Any, results: Results) -> None:
    sides = results["optimum"]
    rows = [
        (tokens, seconds, side)
        for side, found in sides.items()
        for tokens, seconds in zip(found["lengths"], found["completion_s"], strict=True)
    ]
    rows.sort(key=lambda row: -row[0])
    for side in sides:
        at = [rank for rank, row in enumerate(rows, 1) if row[2] == side]
        chosen = [rows[rank - 1] for rank in at]
        label = f"{side} replica: {len(at)} requests"
        lengths.bar(at, [row[0] for row in chosen], width=1.0, color=COLOURS[side], label=label)
        times.barh(at, [row[1] for row in chosen], height=1.0, color=COLOURS[side])
        times.axvline(sides[side]["time_s"], color=COLOURS[side], linewidth=1, linestyle=":")
    lengths.set(xlabel="request, longest first", ylabel="tokens")
    lengths.legend(loc="upper right")
    lengths.set_title("(a) The optimal assignment")
    times.set(xlabel="finished after, s", ylabel="request, longest first")
    times.invert_yaxis()
    times.set_title(f"both finish: {sides['tail']['time_s']:.1f} s and {sides['bulk']['time_s']:.1f} s")


def _top_k(panel: Any, results: Results) -> None:
    seconds, k = results["top_k_times_s"], results["k"]
    shown = min(len(seconds), max(2 * k, 20) + 1)
    panel.plot(range(shown), seconds[:shown], marker="o", markersize=3, color=COLOURS["tailsieve"], label="top-k")
    panel.axhline(results["optimum_s"], color=COLOURS["good"], label=f"optimum, {results['optimum_s']:.1f} s")
    uniform = results["random_uniform_s"]
    panel.axhline(uniform, color=COLOURS["uniform"], linestyle="--", label=f"random halves, {uniform:.1f} s")
    panel.annotate(
        f"k = {k}: {results['top_k_s']:.1f} s",
        (k, results["top_k_s"]),
        xytext=(0.75, 0.22),
        textcoords="axes fraction",
        ha="center",
        arrowprops={"arrowstyle": "-", "linewidth": 0.7},
    )
    panel.set(xlabel="k, isolated requests", ylabel="step time, s")
    panel.legend(fontsize=7.5, loc="upper right")
    panel.set_title("(b) Top-k tail isolation")
