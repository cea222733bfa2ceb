"""A.4 and Fig. A.1: how far simple two-replica policies are from the exact optimum, group by group."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tailsieve_rl.routing.makespan import Floats
from tailsieve_rl.routing.oracle import best_top_k, fixed_share_time, optimal_split
from tailsieve_rl.simulation.experiments import Options, Results
from tailsieve_rl.simulation.experiments.request_groups import (
    PAPER_SHAPE,
    SHAPES,
    SHARE,
    random_uniform_time,
    request_group,
)
from tailsieve_rl.simulation.figures import COLOURS, figure

DESCRIPTION = "Fig. A.1: gaps of top-k, fixed 10 % and random uniform to the exact optimum, 100 groups of 100 requests"

GROUPS = 100
PAPER_WITHIN = MappingProxyType({"1%": 72, "4%": 100})
"""Groups of 100 in which the paper's best top-k is that near to the optimum (A.4)."""

_POLICIES = MappingProxyType(
    {
        "top_k_s": ("best top-k", COLOURS["good"]),
        "fixed_10pct_s": ("fixed 10 %", COLOURS["bulk"]),
        "random_uniform_s": ("random uniform", COLOURS["uniform"]),
    }
)


def run(options: Options) -> Results:
    """The profile of the paper's model at top level, the same for each other shape of tau under "shapes"."""
    blocks = {}
    for name, table in SHAPES.items():
        tau, groups = table(), []
        for index in range(options.repeats or GROUPS):
            groups.append(_group(request_group(options.seed, index), tau, index))
            if (index + 1) % 20 == 0:
                options.progress(f"{name}: {index + 1} groups")
        blocks[name] = {"model": name, "tau": tau.tolist(), "groups": groups, **_summary(groups)}
        options.progress(f"{name}: top-k within 1 % of the optimum in {blocks[name]['top_k_within']['1%']} groups")
    paper = {"paper_top_k_within": dict(PAPER_WITHIN)}
    return {**blocks[PAPER_SHAPE], **paper, "shapes": {k: v for k, v in blocks.items() if k != PAPER_SHAPE}}


def _group(lengths: Any, tau: Floats, index: int) -> dict[str, Any]:
    optimum, isolation = optimal_split(lengths, tau), best_top_k(lengths, tau)
    return {
        "lengths": lengths.tolist(),
        "optimum_s": optimum.time_s,
        "optimum_tail_requests": len(optimum.tail),
        "states": optimum.states,
        "top_k_s": isolation.time_s,
        "k": isolation.k,
        "fixed_10pct_s": fixed_share_time(lengths, tau, SHARE),
        "random_uniform_s": random_uniform_time(lengths, tau, np.random.default_rng(index)),
    }


def gaps(groups: Sequence[Mapping[str, Any]], policy: str) -> Floats:
    """(T - T_opt) / T_opt of a policy in each group."""
    return np.array([group[policy] / group["optimum_s"] - 1 for group in groups])


def _summary(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    top_k = gaps(groups, "top_k_s")
    return {
        "top_k_within": {"1%": int((top_k <= 0.01).sum()), "4%": int((top_k <= 0.04).sum()), "of": len(groups)},
        "largest_top_k_gap": float(top_k.max()),
        "mean_gap": {policy: float(gaps(groups, policy).mean()) for policy in _POLICIES},
    }


def draw(results: Results, out: Path) -> list[Path]:
    path = out / "optimality_gap.png"
    blocks = [results, *results["shapes"].values()]
    with figure(path, columns=len(blocks), size=(3.1, 3.0)) as axes:
        for panel, block in zip(axes[0], blocks, strict=True):
            for policy, (label, colour) in _POLICIES.items():
                found = np.sort(100 * gaps(block["groups"], policy))
                share = np.arange(1, len(found) + 1) / len(found)
                panel.step([1e-3, *np.maximum(found, 1e-3)], [0, *share], where="post", color=colour, label=label)
            for mark in (1, 4):
                panel.axvline(mark, color="black", linewidth=0.6, linestyle=":")
            within = block["top_k_within"]
            panel.set(xscale="log", xlabel="gap to the exact optimum, %", ylim=(0, 1.02), xlim=(0.01, 200))
            counts = f"top-k within 1 %: {within['1%']}, 4 %: {within['4%']} of {within['of']}"
            panel.set_title(f"{block['model']}\n{counts}", fontsize=8)
        axes[0, 0].set_ylabel("share of groups")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return [path]
