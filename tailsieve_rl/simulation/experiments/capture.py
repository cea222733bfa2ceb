"""Fig. 3: how many of the truly longest groups the cutoff catches.

F = N + q groups run on all replicas, q = rho N, and the q that are unfinished at the cutoff are the candidates. What
is truly longest is said by the *regenerated* responses, which the tail pool will run: the headline, and independent of
the race. By the *final* lengths, those that the raced responses would have had, the signal looks better than it is.
A group's length is its response tokens. No filter catches more than q of k groups: that ceiling stands beside.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.cells import RESPONSES
from tailsieve_rl.simulation.experiments.statistics import mean_of
from tailsieve_rl.simulation.experiments.steady import Floats, Ints, bulk_run, pools
from tailsieve_rl.simulation.figures import COLOURS, figure
from tailsieve_rl.simulation.profiles import profile, replicas
from tailsieve_rl.simulation.workloads import WORKLOADS

DESCRIPTION = "Fig. 3: share of the longest groups that the cutoff catches, at 5, 10, 25 % excess candidates"
MODEL = "qwen3.5-35b-a3b-tp2"
GROUPS = 64
STEPS = 40
NAMES = ("math", "code", "kodcode_like", "sky_t1")
RHOS = (0.05, 0.10, 0.25)
SEVERITIES = (0.10, 0.05, 0.02)
"""Shares of the F groups that count as the longest."""
PAPER = {0.05: 0.85, 0.10: 0.93, 0.25: 0.95}
"""Section 2.3. It does not say which share of the groups its long-tail groups are."""
RANKS = 20
"""Bins of the final-length ranking."""


def run(options: Options) -> Results:
    seeds = options.seeds(20)
    rows, rankings = [], []
    for name in NAMES:
        for rho in RHOS:
            captured = capture(name, rho, seeds)
            rows += captured["rows"]
            rankings.append(captured["ranking"])
        options.progress(name)
    return {
        "model": MODEL,
        "groups": GROUPS,
        "responses": RESPONSES,
        "seeds": len(seeds),
        "steps": STEPS,
        "paper": [{"rho": rho, "capture": share} for rho, share in PAPER.items()],
        "headline": "regenerated",
        "capture": rows,
        "ranking": rankings,
    }


def capture(name: str, rho: float, seeds: range, steps: int = STEPS) -> dict[str, Any]:
    """Capture by severity and by either truth, and the chance of being caught by final-length rank."""
    q = round(rho * GROUPS)
    fresh = GROUPS + q
    tau = profile(MODEL).table(fresh * RESPONSES)
    caught: dict[tuple[str, float], list[float]] = {}
    ranking = []
    for seed in seeds:
        stream = pools(WORKLOADS[name](seed, RESPONSES), fresh, steps)
        chosen = np.zeros((steps, fresh))
        np.put_along_axis(chosen, bulk_run(stream, replicas(MODEL), tau).left(q), 1.0, axis=1)
        for truth, lengths in (("regenerated", stream.again), ("final", stream.first)):
            by_rank = _by_rank(chosen, lengths)
            for severity in SEVERITIES:
                caught.setdefault((truth, severity), []).append(float(by_rank[:, : _longest(severity, fresh)].mean()))
        places = (np.arange(fresh) * RANKS) // fresh
        by_bin = np.bincount(places, _by_rank(chosen, stream.first).mean(axis=0)) / np.bincount(places)
        ranking.append(by_bin)
    rows = []
    for (truth, severity), shares in caught.items():
        mean, k = mean_of(shares), _longest(severity, fresh)
        row = {"workload": name, "rho": rho, "q": q, "truth": truth, "severity": severity, "k": k}
        rows.append({**row, "capture": mean.value, "ci95": mean.interval, "ceiling": min(1.0, q / k)})
    return {"rows": rows, "ranking": {"workload": name, "rho": rho, "caught": np.mean(ranking, axis=0).tolist()}}


def _longest(severity: float, fresh: int) -> int:
    return max(1, round(severity * fresh))


def _by_rank(chosen: Floats, lengths: Ints) -> Floats:
    """(steps, F) whether the longest, second longest, ... group was chosen."""
    order = np.argsort(-lengths.sum(axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "capture.png"
    names = list(dict.fromkeys(row["workload"] for row in results["capture"]))
    with figure(path, rows=2, columns=len(names), size=(3.6, 2.9)) as axes:
        for above, below, name in zip(axes[0], axes[1], names, strict=True):
            _draw_capture(above, [row for row in results["capture"] if row["workload"] == name], results["paper"])
            above.set_title(name)
            for ranking, colour in zip(
                (r for r in results["ranking"] if r["workload"] == name), ("uniform", "bulk", "tail"), strict=True
            ):
                ranks = (np.arange(RANKS) + 0.5) * 100 / RANKS
                label = f"{100 * ranking['rho']:.0f} % excess"
                below.plot(ranks, 100 * np.array(ranking["caught"]), color=COLOURS[colour], label=label)
            below.set(xlabel="final-length rank, % (0: longest)", ylabel="left over by the cutoff, %", ylim=(-3, 103))
        for row in axes:
            row[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return [path]


def _draw_capture(axes: Any, rows: list[dict[str, Any]], paper: list[dict[str, float]]) -> None:
    colours = (COLOURS["uniform"], COLOURS["bulk"], COLOURS["tail"])
    for place, severity in enumerate(SEVERITIES):
        shown = [row for row in rows if row["severity"] == severity and row["truth"] == "regenerated"]
        at = np.arange(len(shown)) + (place - 1) * 0.25
        reach = [100 * (row["ci95"][1] - row["capture"]) for row in shown]
        heights = [100 * row["capture"] for row in shown]
        label = f"longest {100 * severity:.0f} %"
        axes.bar(at, heights, 0.23, yerr=reach, color=colours[place], label=label, error_kw={"elinewidth": 0.8})
        ceilings = [100 * row["ceiling"] for row in shown]
        note = "_" if place else "ceiling q / k"
        axes.hlines(ceilings, at - 0.12, at + 0.12, color="black", linewidth=1, label=note)
    axes.plot(range(len(paper)), [100 * row["capture"] for row in paper], "D", color=COLOURS["oracle"], label="paper")
    axes.set_xticks(range(len(paper)), [f"{100 * row['rho']:.0f} %" for row in paper])
    axes.set(xlabel="excess candidates, rho", ylabel="caught, % (regenerated)", ylim=(0, 105))
