"""What the dashboards of wandb and TensorBoard show: sections of panels, each of metrics that a run logs."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart over the steps.

    Attributes:
        title: what it shows, with its unit.
        metrics: their names in verl's loggers.
    """

    title: str
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Panels that belong together.

    Attributes:
        title: its name.
        panels: in order.
        only: which runs log their metrics, where not all of the mode `tailsieve` do.
    """

    title: str
    panels: tuple[Panel, ...]
    only: str = ""

    @property
    def heading(self) -> str:
        """The title, with the runs that it is about."""
        return f"{self.title} ({self.only})" if self.only else self.title

    def metrics(self) -> Iterator[str]:
        """The names of all metrics in it."""
        for panel in self.panels:
            yield from panel.metrics


SECTIONS = (
    Section(
        "Step time",
        (
            # verl's own timers: every run has them, so that any baseline stands beside TailSieve.
            Panel("Generation time, verl's timer, TailSieve and baseline, s", ("timing_s/gen",)),
            Panel("Whole step, verl's timer, s", ("timing_s/step",)),
            Panel("Generation time, first dispatch to last consumed token, s", ("tailsieve/gen_time_s",)),
            Panel("Tail and bulk time, s", ("tailsieve/tail_time_s", "tailsieve/bulk_time_s")),
            Panel("Imbalance, idle share of the pool that finished first", ("tailsieve/imbalance",)),
            Panel("Predicted and real, s", ("tailsieve/predicted_s", "tailsieve/gen_time_s")),
            Panel("Prediction error, share of the prediction", ("tailsieve/prediction_error",)),
        ),
    ),
    Section(
        "Allocation",
        (
            Panel("q, groups of the tail pool", ("tailsieve/q", "tailsieve/proposed_q")),
            Panel("m, replicas of the tail pool", ("tailsieve/m", "tailsieve/proposed_m")),
            Panel("Transitions, change of q, groups", ("tailsieve/transition",)),
            Panel("Left over at the cutoff, groups", ("tailsieve/candidates",)),
            Panel("Thrown away, share of the tokens", ("tailsieve/wasted_fraction",)),
            Panel("Longest groups that were in the tail set, share", ("tailsieve/capture_rate",)),
        ),
    ),
    Section(
        "Quality",
        (
            Panel("Reward, mean", ("critic/rewards/mean",)),
            Panel("Response length, mean, tokens", ("response_length/mean",)),
            Panel(
                "Response length, P50 and P90, tokens",
                ("tailsieve/response_length_p50", "tailsieve/response_length_p90"),
            ),
            Panel("Truncated, share of the responses", ("tailsieve/truncated_fraction",)),
            Panel("Tail age, most steps that a group waited", ("tailsieve/tail_age_max",)),
            Panel("Staleness of the weights, most steps", ("training/off_policy/trajectory_staleness/max",)),
        ),
    ),
    Section(
        "Speculation",
        (
            Panel("Draft depth, tokens", ("tailsieve/draft_depth_tail", "tailsieve/draft_depth_bulk")),
            Panel("Tokens a verification", ("tailsieve/accept_length_tail", "tailsieve/accept_length_bulk")),
            Panel("Accepted, share of the drafts", ("tailsieve/accept_rate_tail", "tailsieve/accept_rate_bulk")),
            Panel("Drafted tokens", ("tailsieve/drafted_tokens_tail", "tailsieve/drafted_tokens_bulk")),
            Panel("Accepted tokens", ("tailsieve/accepted_tokens_tail", "tailsieve/accepted_tokens_bulk")),
        ),
        only="runs that speculate",
    ),
    Section(
        "Engines",
        (
            Panel("Seconds a token: alone, and at the largest batch seen", ("tailsieve/tau_1", "tailsieve/tau_max")),
            Panel("Misfit of the decode model", ("tailsieve/tau_residual",)),
            Panel("Retries and refusals, responses", ("tailsieve/retries", "tailsieve/refused")),
            Panel("Responses outside their pool", ("tailsieve/pool_fallbacks",)),
            Panel("Controller, ms", ("tailsieve/controller_ms",)),
            Panel(
                "Aborting at the cutoff, and waiting for rewards, s", ("tailsieve/abort_s", "tailsieve/reward_wait_s")
            ),
            Panel("Emulation lag, emulated s", ("tailsieve/emulation_lag_s",)),
        ),
    ),
)
