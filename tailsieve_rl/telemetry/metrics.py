"""Metrics of a step, under the names that dashboards rely on (`tailsieve/...`)."""

from collections.abc import Mapping

from tailsieve_rl.routing.outcome import StepOutcome
from tailsieve_rl.routing.selection import capture_rate
from tailsieve_rl.telemetry.run_files import response_lengths
from tailsieve_rl.telemetry.speculation import speculation_figures, verl_speculation


def step_metrics(outcome: StepOutcome, extras: Mapping[str, float]) -> dict[str, float]:
    """What verl's loggers get of a step; times in seconds, counts in groups, tokens or responses.

    Args:
        outcome: the finished step.
        extras: the coordinator's measurements beside it.
    """
    plan = outcome.plan
    work = {group.uid: group.work for group in outcome.consumed}
    tail = [group.uid for group in outcome.consumed if group.tail]
    captured = capture_rate(work, tail)
    lengths = response_lengths(outcome.lengths)
    metrics: dict[str, float] = {
        "tailsieve/q": plan.q,
        "tailsieve/q_next": plan.q_next,
        "tailsieve/m": plan.m,
        "tailsieve/gen_time_s": outcome.gen_time_s,
        "tailsieve/tail_time_s": outcome.tail_time_s,
        "tailsieve/bulk_time_s": outcome.bulk_time_s,
        "tailsieve/imbalance": outcome.imbalance,
        "tailsieve/candidates": len(outcome.candidates),
        "tailsieve/aborted_tokens": outcome.aborted_tokens,
        "tailsieve/wasted_fraction": outcome.wasted_fraction,
        "tailsieve/retries": outcome.retries,
        "tailsieve/refused": outcome.refused,
        "tailsieve/transition": plan.q_next - plan.q,
        # verl has the mean and the maximum.
        "tailsieve/response_length_p50": lengths["response_length_p50"],
        "tailsieve/response_length_p90": lengths["response_length_p90"],
        **{f"tailsieve/{name}": value for name, value in speculation_figures(outcome).items()},
        **verl_speculation(outcome),
        **{f"tailsieve/{name}": value for name, value in extras.items()},
    }
    if captured is not None:
        metrics["tailsieve/capture_rate"] = captured
    return {name: float(value) for name, value in metrics.items()}
