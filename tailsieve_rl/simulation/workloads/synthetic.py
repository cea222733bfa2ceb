"""A synthetic workload: the prompt, the sampling and the checkpoint each add to a score, a curve makes it a length."""

from dataclasses import dataclass, field
from math import pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.simulation.workloads.length_curve import LengthCurve
from tailsieve_rl.simulation.workloads.noise import Stream, normals, of_attempts, uniforms

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

INTERACTION_PERIOD_STEPS = (100.0, 400.0)
"""Steps in which a prompt's own drift goes once around, drawn for each prompt. An estimate: with a checkpoint every ten
steps, neighbouring checkpoints hardly differ and those thirty apart do, as Figure B.1's two AUC curves ask for."""

CHECKPOINT_PERIOD_STEPS = 400.0
"""Steps in which the drift that all prompts share goes once around. An estimate: thirty checkpoints, ten steps each,
see it grow, turn and fall."""


@dataclass(frozen=True)
class Weights:
    """How the variance of a score divides (paper Appendix B, but of scores, not of lengths).

    Prompt, interaction and sampling sum to 1, so that at step 0, where the shared drift is 0, lengths follow the curve
    exactly; the checkpoint's share comes on top of them as policies change.

    Attributes:
        sampling: share of the sampling, drawn anew for each response of each attempt.
        interaction: share of the drift that each prompt has of its own.
        checkpoint: variance of the drift that all prompts share, over its whole period.
    """

    sampling: float
    interaction: float = 0.0
    checkpoint: float = 0.0

    def __post_init__(self) -> None:
        if min(self.sampling, self.interaction, self.checkpoint) < 0 or self.sampling + self.interaction > 1:
            raise ValueError(f"{self} must be shares of 0 or more; sampling and interaction sum to 1 at most")

    @property
    def prompt(self) -> float:
        """Share of the prompt alone."""
        return 1.0 - self.sampling - self.interaction


@dataclass(frozen=True)
class Synthetic:
    """A `Workload` from a curve and weights.

    The sampling noise of a response depends on its prompt and attempt, not on the step: policies that generate a prompt
    a step apart still share it. To sample a prompt independently at several checkpoints, use several attempts.

    Attributes:
        name: what results call it.
        seed: of the prompt stream and of all its noise, 0 or more.
        curve: distribution of the lengths.
        weights: how it divides.
        responses: n, responses of a group.
    """

    name: str
    seed: int
    curve: LengthCurve
    weights: Weights
    responses: int = 8
    cap: int = field(init=False)

    def __post_init__(self) -> None:
        if self.responses < 1:
            raise ValueError(f"responses = {self.responses} must be 1 or more")
        object.__setattr__(self, "cap", self.curve.cap)

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """(groups, n) tokens; see `Workload.lengths`."""
        return self.curve.tokens(self.prompt_scores(prompts, step)[:, None] + self._sampling(prompts, attempts))

    def prompt_scores(self, prompts: Ints, step: int) -> Floats:
        """(groups,) what the prompt and the policy of a step add to the score of every response."""
        weights = self.weights
        scores = self._traits(prompts)[:, 0] * sqrt(weights.prompt)
        if weights.interaction:
            _, along, across = self._traits(prompts).T
            low, high = INTERACTION_PERIOD_STEPS
            periods = low + (high - low) * uniforms(self.seed, Stream.PROMPT, prompts, 1)[:, 0]
            angle = 2 * pi * step / periods
            scores += sqrt(weights.interaction) * (along * np.cos(angle) + across * np.sin(angle))
        return scores + sqrt(2 * weights.checkpoint) * sin(2 * pi * step / CHECKPOINT_PERIOD_STEPS)

    def _traits(self, prompts: Ints) -> Floats:
        return normals(self.seed, Stream.PROMPT, prompts, 3)

    def _sampling(self, prompts: Ints, attempts: Ints) -> Floats:
        noise = np.empty((len(prompts), self.responses))
        for attempt, these in of_attempts(attempts):
            noise[these] = normals(self.seed, Stream.RESPONSE, np.asarray(prompts)[these], self.responses, attempt)
        return noise * sqrt(self.weights.sampling)
