"""The workloads that experiments use, by name. Their constants were fitted before any policy was tuned on them."""

from tailsieve_rl.simulation.workloads.length_curve import LengthCurve
from tailsieve_rl.simulation.workloads.synthetic import Synthetic, Weights

CAP = 16_384
"""Tokens; Table A.1 of the paper."""

KODCODE_QUANTILES = ((0.01, 455.0), (0.1, 834.0), (0.5, 2195.0), (0.9, 6871.0), (0.99, 12_459.0))
"""230 coding prompts of KodCode with three responses each of a reasoning model, measured; see `kodcode_like`."""

KODCODE_LONGEST = 16_663.0
"""Tokens of the longest of those responses."""

MATH_QUANTILES = ((0.01, 240.0), (0.1, 440.0), (0.5, 1160.0), (0.9, 4115.0), (0.998, 11_800.0))
"""Median, P90 and maximum of Table A.3, whose trace ends well below the cap: the responses that stop by themselves. The
maximum is taken for that of one step of 64 x 8 responses. The paper says nothing of the lower half: P1 and P10 have the
ratio to the median that they have in `KODCODE_QUANTILES`."""

MATH_TRUNCATED = 0.03
"""Section 4.1: about 3 % of the responses on the math workload."""

MATH_WEIGHTS = Weights(sampling=0.19, interaction=0.012, checkpoint=0.043)
"""Fitted so that Appendix B's shares of the sum of squares of lengths come out: prompt 64.8 %, sampling 26.1 %,
checkpoint 2.2 %, interaction 6.9 % (64 prompts, 30 checkpoints ten steps apart, 8 samples; means over seeds). They
differ from those because these weigh scores, while half of the variance of lengths is in the few at the cap, and
because a share of a sum of squares has some of the sampling in every other share."""

CODE_SCALE = 0.5
"""Length of a code response without thinking, relative to those behind `KODCODE_QUANTILES`: an estimate, since the
paper gives no quantile of its code workload. Its prompt asks for an explanation (algorithm, correctness, edge cases,
complexity) and one function, some 600 to 1,500 tokens; half of the reasoning model's median is 1,098. The shape is
kept, as the prompts are of the same collection."""

CODE_TRUNCATED = 0.001
"""Section 4.1: 0.1 % of the responses on the code workload."""

CODE_WEIGHTS = Weights(sampling=0.24, interaction=0.022, checkpoint=0.031)
"""Fitted to the same shares as `MATH_WEIGHTS`: Appendix B gives averages over its tracks, not one for each."""

KODCODE_WEIGHTS = Weights(sampling=0.195)
"""Fitted so that prompts hold 77 % of the variance of lengths by variance components, as measured; one checkpoint."""


def math_workload(seed: int, responses: int = 8, evolving: bool = True) -> Synthetic:
    """The paper's math workload (DeepScaleR prompts, thinking off, 16K cap).

    Args:
        seed: of the prompt stream.
        responses: n.
        evolving: the policy is trained, so that lengths drift with the step; else every step is like step 0, as in
            the paper's step-wise experiments.
    """
    curve = LengthCurve(MATH_QUANTILES, CAP, MATH_TRUNCATED)
    return Synthetic("math", seed, curve, _evolving(MATH_WEIGHTS, evolving), responses)


def code_workload(seed: int, responses: int = 8, evolving: bool = True) -> Synthetic:
    """The paper's code workload (KodCode prompts, bounded reasoning, 16K cap); arguments as of `math_workload`."""
    quantiles = tuple((probability, CODE_SCALE * tokens) for probability, tokens in KODCODE_QUANTILES)
    curve = LengthCurve(quantiles, CAP, CODE_TRUNCATED, CODE_SCALE * KODCODE_LONGEST)
    return Synthetic("code", seed, curve, _evolving(CODE_WEIGHTS, evolving), responses)


def kodcode_like(seed: int, responses: int = 8) -> Synthetic:
    """A stand-in for a measured trace that may not be shipped, fitted to its quantiles and its variance components."""
    curve = LengthCurve(KODCODE_QUANTILES, int(KODCODE_LONGEST))
    return Synthetic("kodcode_like", seed, curve, KODCODE_WEIGHTS, responses)


def light_tail(seed: int, responses: int = 8) -> Synthetic:
    """A lognormal with Table A.3's weak tail: P90 1.5 times the median of 1,160. Prompts matter as much as for math."""
    curve = LengthCurve(((0.5, 1160.0), (0.9, 1740.0)), CAP)
    return Synthetic("light_tail", seed, curve, Weights(MATH_WEIGHTS.sampling), responses)


def uniform_lengths(seed: int, responses: int = 8) -> Synthetic:
    """No tail: responses of 1,160 tokens, give or take a few per cent, none of which the prompt decides.

    There is nothing to isolate here, and nothing to predict: a policy should find that uniform routing is best.
    """
    curve = LengthCurve(((0.05, 1100.0), (0.95, 1220.0)), CAP)
    return Synthetic("uniform_lengths", seed, curve, Weights(sampling=1.0), responses)


def _evolving(weights: Weights, evolving: bool) -> Weights:
    return weights if evolving else Weights(weights.sampling)
