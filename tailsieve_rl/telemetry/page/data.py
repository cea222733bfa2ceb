"""What the report page is given: runs by column, numbers rounded, requests packed."""

from collections.abc import Sequence
from math import floor, isfinite, log2
from statistics import median, quantiles
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tailsieve_rl import __version__
from tailsieve_rl.routing.outcome import ResponseStatus
from tailsieve_rl.telemetry.page.timelines import timelines
from tailsieve_rl.telemetry.runs import Run, relative

REQUIRED = (
    "step",
    "q",
    "m",
    "gen_time_s",
    "tail_time_s",
    "bulk_time_s",
    "candidates",
    "aborted_tokens",
    "response_length_mean",
)
"""Of every step. Other metrics are shown where a run has them."""

OPTIONAL = {
    "reward_mean": "rewards (reward_mean): rollouts without training have none",
    "predicted_s": "predicted step times (predicted_s): only a controller that predicts writes them",
    "accept_length_bulk": "drafts (accept_length_bulk, accept_rate_bulk, ...): it decoded without speculation",
}
"""Metric -> what the page says when no run has it."""

BINS_PER_DOUBLING = 4
"""Of the distribution of response lengths."""


def page_data(runs: Sequence[Run], steps: range | None = None) -> dict[str, Any]:
    """All that the page draws, as JSON allows it.

    Args:
        runs: the first one is what the others are compared with.
        steps: whose timelines are drawn; None: as many as there is room for, evenly spaced.

    Raises:
        RunFilesError: if a run lacks what the page cannot do without.
    """
    for run in runs:
        run.require(REQUIRED)
    requests = [run.requests() for run in runs]
    lengths = [_consumed_lengths(table) for table in requests]
    drawn = timelines(runs, requests, steps)
    return {
        "version": __version__,
        "runs": [
            {**_run(run, runs[0]), "lengths": _quantiles(of), **timeline}
            for run, of, timeline in zip(runs, lengths, drawn, strict=True)
        ],
        "lengths": _distribution(lengths),
        "missing": [why for key, why in OPTIONAL.items() if all(key not in s for run in runs for s in run.steps)],
    }


def _run(run: Run, baseline: Run) -> dict[str, Any]:
    times = run.column("gen_time_s")
    low, _, high = quantiles(times, n=4) if len(times) > 1 else times * 3
    ratio = None if run is baseline else relative(run.steps, baseline.steps)
    aborted = sum(run.column("aborted_tokens"))
    return {
        "name": run.name,
        "folder": str(run.folder),
        "mode": run.summary["mode"],
        "backend": run.summary["backend"],
        "model": run.summary.get("model"),
        "measured": run.measured,
        "groups": run.summary["groups_per_step"],
        "responses": run.summary["responses_per_group"],
        "genTime": [median(times), low, high],
        # Shorter times are larger speedups, so that the ends of the interval change places.
        "speedup": None if ratio is None else [1 / ratio[0], 1 / ratio[2], 1 / ratio[1]],
        "abortedTokens": aborted,
        "wasted": aborted / max(1, aborted + _tokens(run)),
        "offPolicy": run.summary.get("off_policy_trajectories"),
        "steps": _columns(run),
    }


def _tokens(run: Run) -> float:
    """Consumed tokens of all steps."""
    responses = run.summary["groups_per_step"] * run.summary["responses_per_group"]
    return float(responses * sum(run.column("response_length_mean")))


def _columns(run: Run) -> dict[str, list[float | None]]:
    """Every numeric metric of the steps."""
    keys = {key: None for step in run.steps for key, value in step.items() if isinstance(value, int | float)}
    return {key: [_rounded(value) for value in run.column(key)] for key in keys}


def _rounded(value: Any) -> float | None:
    """Six significant digits are more than a chart shows; what is no number is left out."""
    if not isinstance(value, int | float) or not isfinite(value):
        return None
    return float(f"{value:.6g}")


def _consumed_lengths(requests: pa.Table) -> np.ndarray:
    consumed = pa.compute.equal(requests["status"], ResponseStatus.CONSUMED.value)
    return np.asarray(requests.filter(consumed)["response_tokens"].to_numpy())


def _quantiles(lengths: np.ndarray) -> list[int]:
    """P50, P90 and the longest, tokens."""
    return [round(float(n)) for n in np.percentile(lengths, [50, 90, 100])] if lengths.size else [0, 0, 0]


def _distribution(lengths: Sequence[np.ndarray]) -> dict[str, Any]:
    """Shares of the responses by length, in bins of equal width on a logarithmic axis, the same for all runs."""
    longest = max((int(of.max()) for of in lengths if of.size), default=1)
    shortest = max(1, min((int(of.min()) for of in lengths if of.size), default=1))
    first = floor(log2(shortest) * BINS_PER_DOUBLING)
    last = floor(log2(longest) * BINS_PER_DOUBLING) + 1
    edges = 2.0 ** (np.arange(first, last + 1) / BINS_PER_DOUBLING)
    shares = [np.histogram(np.maximum(of, 1), edges)[0] / max(1, of.size) for of in lengths]
    return {"edges": [_rounded(e) for e in edges], "shares": [[_rounded(float(s)) for s in of] for of in shares]}
