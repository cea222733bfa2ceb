"""Fig. 4: the step time over q for every split, with a weak, the real and a strong tail, and the proxy of section 2.4.

No (q, m) is best for all three: what the best one of each costs on the others stands beside. Uniform routing is drawn
twice: by whole group, the paper's baseline, and by request, which is the boundary (0, 0) of the same mechanism.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control.tuning import largest_q
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.statistics import speedup
from tailsieve_rl.simulation.experiments.steady import Floats, bulk_run, pools
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.workloads import tail_strength
from tailsieve_rl.simulation.workloads.tail_strength import RATIOS

DESCRIPTION = "Fig. 4: step time by q and m for a weak, the real and a strong tail, with the proxy's parts"
MODELS = ("qwen3.5-35b-a3b-tp2", "qwen3.5-4b")
GROUPS = 64
STEPS = 30
PROXY_STEPS = 10
"""Of one seed: the proxy explains, and does not decide."""

Surface = dict[Allocation, list[float]]
"""Mean step time of each seed, seconds. (0, 0) is uniform routing by request."""


def run(options: Options) -> Results:
    seeds = options.seeds(20)
    landscapes = [landscape(model, seeds, options) for model in MODELS]
    return {"groups": GROUPS, "responses": RESPONSES, "seeds": len(seeds), "steps": STEPS, "landscapes": landscapes}


def landscape(model: str, seeds: range, options: Options, steps: int = STEPS) -> dict[str, Any]:
    """The three workloads on one configuration."""
    setup = Setup(GROUPS, RESPONSES, replicas(model))
    tau = profile(model).table(2 * GROUPS * RESPONSES)
    workloads, surfaces, best = [], {}, {}
    for name in RATIOS:
        surfaces[name], uniform_s = surface(name, seeds, setup, tau, steps)
        described = _described(name, surfaces[name], uniform_s)
        best[name] = Allocation(described["best"]["q"], described["best"]["m"])
        described["proxy"] = proxies(name, best[name].m, options.seed, setup, tau)
        workloads.append(described)
        options.progress(f"{model}, {name} tail: best {best[name]}, {described['best']['speedup']:.3f}x")
    loss = {
        name: {other: float(np.mean(found[best[other]]) / np.mean(found[best[name]]) - 1) for other in RATIOS}
        for name, found in surfaces.items()
    }
    return {"model": model, "replicas": setup.replicas, "workloads": workloads, "loss_with_the_best_pair_of": loss}


def surface(name: str, seeds: range, setup: Setup, tau: Floats, steps: int = STEPS) -> tuple[Surface, list[float]]:
    """Step times of every (q, m) by seed, and of uniform routing by group."""
    found: Surface = {}
    by_group_s: list[float] = []
    for seed in seeds:
        stream = pools(tail_strength(name, seed, RESPONSES), setup.groups, steps + 1)
        for by_group, times in ((False, found.setdefault(Allocation(0, 0), [])), (True, by_group_s)):
            times.append(float(bulk_run(stream, setup.replicas, tau, by_group).cutoff_s(0)[1:].mean()))
        for m in range(1, setup.replicas):
            bulk = bulk_run(stream, setup.replicas - m, tau)
            for q in range(1, largest_q(setup) + 1):
                found.setdefault(Allocation(q, m), []).append(float(bulk.step_s(q, m, tau).mean()))
    return found, by_group_s


def proxies(name: str, m: int, seed: int, setup: Setup, tau: Floats) -> list[dict[str, float]]:
    """The proxy's parts at one split, means of a step."""
    stream = pools(tail_strength(name, seed, RESPONSES), setup.groups, PROXY_STEPS)
    bulk = bulk_run(stream, setup.replicas - m, tau)
    rows = []
    for q in range(1, largest_q(setup) + 1):
        parts = bulk.proxy(q, m, setup.replicas, tau, PROXY_STEPS)
        means = {"advantage_s": parts.advantage_s, "penalty_s": parts.penalty_s, "work": parts.work}
        rows.append({"q": q, "m": m, **{key: float(values.mean()) for key, values in means.items()}})
    return rows


def _described(name: str, found: Surface, by_group_s: list[float]) -> dict[str, Any]:
    uniform_s = found[Allocation(0, 0)]
    splits, sizes = sorted({at.m for at in found} - {0}), sorted({at.q for at in found} - {0})
    means = {at: float(np.mean(times)) for at, times in found.items()}

    def stated(at: Allocation) -> dict[str, Any]:
        gain, own = speedup(by_group_s, found[at]), speedup(uniform_s, found[at])
        over = {"speedup": gain.value, "ci95": gain.interval, "over_uniform_by_request": own.value}
        return {"q": at.q, "m": at.m, "step_s": means[at], **over}

    optima = [stated(min((at for at in found if at.m == m), key=lambda at: means[at])) for m in splits]
    best = min(optima, key=lambda at: at["step_s"])
    boundary_s = means[Allocation(0, 0)]
    return {
        "tail": name,
        "p90_over_p50": RATIOS[name],
        "uniform_by_group_s": float(np.mean(by_group_s)),
        "uniform_by_request_s": boundary_s,
        "q": sizes,
        "m": splits,
        "step_s": [[means[Allocation(q, m)] for q in sizes] for m in splits],
        "best_of_m": optima,
        "best": best,
        "boundary_is_best": boundary_s <= best["step_s"],
    }


def draw(results: Results, out: Path) -> list[Path]:
    paths = []
    for landscape in results["landscapes"]:
        paths.append(out / f"landscape-{landscape['model']}.png")
        with figure(paths[-1], rows=2, columns=len(landscape["workloads"]), size=(4.2, 3.2)) as axes:
            for above, below, workload in zip(axes[0], axes[1], landscape["workloads"], strict=True):
                _draw_surface(above, workload, landscape["replicas"])
                _draw_proxy(below, workload)
            right = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
            axes[0][-1].legend(fontsize=7, title="tail replicas", title_fontsize=7, **right)
            axes[1][0].legend(fontsize=7, loc="lower left")
    return paths


def _draw_surface(axes: Any, workload: dict[str, Any], replicas_in_all: int) -> None:
    from matplotlib import colormaps

    best, colours = workload["best"], colormaps["viridis"](np.linspace(0, 0.9, len(workload["m"])))
    for times, optimum, colour in zip(workload["step_s"], workload["best_of_m"], colours, strict=True):
        axes.plot(workload["q"], times, color=colour, linewidth=1.4, label=f"{optimum['m']} of {replicas_in_all}")
        overall = optimum == best
        marker, size = ("*", 13) if overall else ("o", 4)
        axes.plot(optimum["q"], optimum["step_s"], marker, color="black" if overall else colour, markersize=size)
    for key, style in (("uniform_by_group_s", "--"), ("uniform_by_request_s", ":")):
        axes.axhline(workload[key], color=COLOURS["tail"], linestyle=style, linewidth=1.2)
        name = key.removeprefix("uniform_").removesuffix("_s").replace("_", " ")
        axes.annotate(f"uniform {name}", (workload["q"][-1], workload[key]), fontsize=6, ha="right", va="bottom")
    axes.set_ylim(0.93 * min(best["step_s"], workload["uniform_by_request_s"]), 1.45 * workload["uniform_by_group_s"])
    axes.set(xlabel="isolated groups q", ylabel="step time, s")
    where = f"q = {best['q']}, m = {best['m']}: {best['speedup']:.2f}x"
    axes.set_title(f"{workload['tail'].capitalize()} tail, {where}")


def _draw_proxy(axes: Any, workload: dict[str, Any]) -> None:
    rows, best = workload["proxy"], workload["best"]
    sizes, work = [row["q"] for row in rows], np.array([row["work"] for row in rows]) / 1000
    parts = (("advantage_s", 1, "good", "early advantage"), ("penalty_s", -1, "tail", "late penalty"))
    for key, sign, colour, label in parts:
        heights = sign * np.array([row[key] for row in rows]) / work
        axes.fill_between(sizes, heights, color=COLOURS[colour], alpha=0.5, linewidth=0, label=label)
    axes.axvline(best["q"], color="black", linewidth=0.8, linestyle=":")
    axes.set(xlabel="isolated groups q", ylabel="seconds per 1,000 tail tokens")
    axes.set_title(f"Proxy at m = {best['m']}")
    right = axes.twinx()
    right.plot(sizes, work, color=COLOURS["uniform"], linewidth=1.2)
    right.set_ylabel("W_tail, 1,000 tokens (line)", color=COLOURS["uniform"])
    right.grid(False)
    right.spines["right"].set_visible(True)
