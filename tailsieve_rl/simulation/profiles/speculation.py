"""tau(b, d): decoding with d draft tokens, from tau(b), an acceptance and the cost of a draft (paper 4.3)."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint
from tailsieve_rl.routing.draft import geometric
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS, H100
from tailsieve_rl.simulation.profiles.roofline import WEIGHT_BYTES, dense_parameters, roofline

ACCEPTANCE = 0.8
"""Chance that a draft token is accepted, given that those before it were: an estimate. DeepSeek-V3's report has 85 to
90 % for the first token of its MTP module; here one head drafts all of them, each from its own last one."""


def with_drafts(
    model: DecodeModel,
    depths: Iterable[int],
    acceptance: float,
    draft_cost_share: float,
    verify: Callable[[int], DecodeModel] | None = None,
) -> DecodeModel:
    """A decode model with points for depth 0 and for each draft depth, at every b that it has.

    tau(b, d) = (time to verify d + 1 tokens of each of b requests + d drafts) / expected accepted length.

    Args:
        model: without speculation; only its points of depth 0 are read.
        depths: draft depths, 1 or more.
        acceptance: chance that a draft is accepted, given that those before it were.
        draft_cost_share: time of one draft pass as a share of tau(b).
        verify: tokens of a request -> model whose tau(b) is the time to verify them, seconds a pass. None: tau at
            b (d + 1) requests. That suits experts, which are read for each token; it is too slow for what is read once
            for each request however many tokens it verifies: keys, values and states.

    Raises:
        ValueError: for an acceptance outside of 0 to 1, a negative share or a depth below 1.
    """
    chosen = sorted(set(depths))
    if not 0 <= acceptance <= 1 or draft_cost_share < 0 or any(depth < 1 for depth in chosen):
        raise ValueError(
            f"acceptance = {acceptance} must be from 0 to 1, draft_cost_share = {draft_cost_share} 0 or more, "
            f"depths = {chosen} 1 or more"
        )
    plain = [point for point in model.points if point.draft_depth == 0]
    drafted = []
    accepted = geometric(acceptance, max(chosen, default=0))
    for depth in chosen:
        verifier = verify(depth + 1) if verify else None
        for point in plain:
            pass_s = float(verifier.tau(point.b) if verifier else model.tau(point.b * (depth + 1)))
            pass_s += depth * draft_cost_share * point.tau_s
            drafted.append(DecodePoint(point.b, pass_s / accepted.tokens(depth), depth))
    notes = {**model.notes, "acceptance": list(accepted.at_least)}
    return replace(model, points=(*plain, *drafted), notes=notes)


def draft_cost_share(name: str) -> float:
    """One pass of a model's MTP head as a share of tau(1): reading its one layer and the output projection.

    The same roofline as the profiles; experts of the head are left out, so this is for dense models. At larger b the
    share is kept, which is pessimistic: what grows there is the states of all layers, and the head has one.

    Args:
        name: one of PROFILES.
    """
    configuration = CONFIGURATIONS[name]
    model = configuration.model
    projection = model.vocabulary * model.hidden
    layer = (dense_parameters(model) - projection) / model.layers
    bandwidth = H100.bandwidth * H100.weight_efficiency * configuration.gpus
    return (WEIGHT_BYTES * (layer + projection) / bandwidth + H100.layer_s) / float(profile(name).tau(1))


def profile_with_mtp(name: str, depths: Iterable[int], acceptance: float = ACCEPTANCE) -> DecodeModel:
    """The committed profile of a dense model with its MTP head at some draft depths; verification by the roofline.

    Args:
        name: one of PROFILES.
        depths: draft depths, 1 or more.
        acceptance: chance that a draft is accepted, given that those before it were.
    """
    configuration = CONFIGURATIONS[name]
    return with_drafts(
        profile(name), depths, acceptance, draft_cost_share(name), lambda tokens: roofline(configuration, H100, tokens)
    )


def modelled(name: str, acceptance: float | None, max_depth: int) -> DecodeModel:
    """A shipped profile: with MTP at depths 1 to `max_depth` if an acceptance is given, else without speculation."""
    return profile(name) if acceptance is None else profile_with_mtp(name, range(1, max_depth + 1), acceptance)
