"""tau(b, d): decoding with d draft tokens (paper 4.3), by the roofline of its parts and an acceptance.

tau(b, d) = (step that verifies d + 1 tokens of each of b requests + drafting) / tokens that a verification yields
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.decode_model import DecodeModel, DecodePoint
from tailsieve_rl.routing.draft import geometric
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS, H100
from tailsieve_rl.simulation.profiles.drafters import Method, dflash_drafter, mtp_head
from tailsieve_rl.simulation.profiles.roofline import BATCHES, forward_s, product_s, step_s

Floats = NDArray[np.float64]

ACCEPTANCE = 0.8
"""Chance that a draft is accepted, given that those before it were, where nothing else is said: the MTP head of
Qwen3-Next yields 3.01 tokens a verification at three drafts on GSM8K, which is 0.81 (see `published`)."""


def profile_with_drafts(
    name: str, method: Method, depths: Iterable[int], acceptance: float = ACCEPTANCE, runs: int | None = None
) -> DecodeModel:
    """The committed profile of a configuration with points for depth 0 and for each draft depth.

    Args:
        name: one of PROFILES.
        method: what drafts.
        depths: draft depths, 1 or more. A DFlash block of B drafts B - 1.
        acceptance: chance that a draft is accepted, given that those before it were.
        runs: drafts that the drafter makes in every step, of which `depth` are verified, as vLLM's V2 runner does on
            GPUs (from its start it has the largest depth there is); depth 0 then pays for them too. None: as many as
            are verified, as its V1 runner does, and as an engine does that was started at that depth.

    Raises:
        ValueError: for an acceptance outside of 0 to 1, a depth below 1, or one above `runs`.
    """
    chosen = sorted(set(depths))
    if not 0 <= acceptance <= 1 or any(not 1 <= depth <= (runs or depth) for depth in chosen):
        most = f" to {runs}" if runs else ""
        raise ValueError(f"acceptance = {acceptance} must be from 0 to 1, depths = {chosen} from 1{most}")
    model, accepted = profile(name), geometric(acceptance, max(chosen, default=0))
    points = [] if runs else list(model.points)
    for depth in [0, *chosen] if runs else chosen:
        pass_s = step_s(CONFIGURATIONS[name], H100, depth + 1) + draft_s(name, method, depth, runs or depth)
        points += [
            DecodePoint(b, float(s), depth) for b, s in zip(BATCHES, pass_s / accepted.tokens(depth), strict=True)
        ]
    notes = {**model.notes, "drafts": method, "acceptance": list(accepted.at_least)}
    return replace(model, points=tuple(points), notes=notes)


def draft_s(name: str, method: Method, depth: int, runs: int) -> Floats:
    """(BATCHES,) seconds of drafting in a step.

    An MTP head takes a pass for each draft; the first takes in all tokens that the step verified (vLLM pads it to
    them), the others one of each request. DFlash's drafter takes one pass over the last token and a mask for each
    draft, and takes in the verified tokens as context.

    Args:
        name: one of PROFILES.
        method: what drafts.
        depth: drafts that the step verified, of each request.
        runs: drafts that are made.
    """
    drafter = mtp_head(name) if method == "mtp" else dflash_drafter(name)
    model, gpus = CONFIGURATIONS[name].model, CONFIGURATIONS[name].gpus
    b = np.array(BATCHES)

    def one_pass(taken: int, tokens: int, sampled: int) -> Floats:
        fuse_s = product_s(drafter.projection, b * taken, gpus, H100)
        head_s = product_s(model.vocabulary * model.hidden, b * sampled, gpus, H100)
        return H100.draft_s + fuse_s + forward_s(drafter.layers, gpus, H100, tokens) + head_s

    if not runs:
        return np.zeros(len(BATCHES))
    if drafter.at_once:
        return one_pass(depth + 1, runs + 1, runs)
    return one_pass(depth + 1, depth + 1, 1) + (runs - 1) * one_pass(1, 1, 1)


def modelled(name: str, acceptance: float | None, max_depth: int) -> DecodeModel:
    """A shipped profile: with MTP at depths 1 to `max_depth` if an acceptance is given, else without speculation."""
    if acceptance is None:
        return profile(name)
    return profile_with_drafts(name, "mtp", range(1, max_depth + 1), acceptance)
