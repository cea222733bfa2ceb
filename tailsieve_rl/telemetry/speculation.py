"""What a step says of its drafts, by pool; and in verl's names."""

from statistics import fmean

from tailsieve_rl.routing.outcome import ResponseRecord, ResponseStatus, StepOutcome
from tailsieve_rl.routing.plan import Pool


def speculation_figures(outcome: StepOutcome) -> dict[str, float]:
    """Draft depths, and drafts of the pools that had any.

    `draft_depth_*` is left out where the depth follows the batch size. `accept_length_*` is tokens a verification, its
    own one included, `accept_rate_*` accepted drafts as a share of the verified ones. Under uniform routing all
    replicas are the bulk pool.
    """
    figures: dict[str, float] = {}
    for pool in Pool:
        depth = outcome.plan.depth_of(pool)
        if isinstance(depth, int):
            figures[f"draft_depth_{pool}"] = depth
        records = [r for r in outcome.records if r.pool is pool and r.accepted]
        verifications, drafted = sum(sum(r.accepted) for r in records), sum(r.drafted_tokens for r in records)
        if not verifications or not drafted:
            continue
        accepted = sum(r.accepted_tokens for r in records)
        figures[f"drafted_tokens_{pool}"], figures[f"accepted_tokens_{pool}"] = drafted, accepted
        figures[f"accept_length_{pool}"] = 1 + accepted / verifications
        figures[f"accept_rate_{pool}"] = accepted / drafted
    return figures


def verl_speculation(outcome: StepOutcome) -> dict[str, float]:
    """verl's own metrics of drafts, which it computes where it configures MTP itself: means over responses.

    As in verl (trainer/ppo/ray_trainer.py, compute_spec_decode_metrics), a response without drafts counts as 0.
    """
    consumed = [r for r in outcome.records if r.status is ResponseStatus.CONSUMED]
    if not any(r.drafted_tokens for r in consumed):
        return {}
    return {
        "rollout/spec_accept_rate": fmean(map(_rate, consumed)),
        "rollout/spec_accept_length": fmean(map(_length, consumed)),
    }


def _rate(record: ResponseRecord) -> float:
    return record.accepted_tokens / record.drafted_tokens if record.drafted_tokens else 0.0


def _length(record: ResponseRecord) -> float:
    return 1 + record.accepted_tokens / sum(record.accepted) if sum(record.accepted) else 0.0
