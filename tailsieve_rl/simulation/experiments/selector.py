"""How much the cutoff's choice of tail groups depends on policy and luck: epsilon_t and eta_t of Appendix E."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.makespan import pool_times
from tailsieve_rl.routing.policies import Setup
from tailsieve_rl.simulation.experiments.composition import Population, generate
from tailsieve_rl.simulation.workloads import Workload

Floats = NDArray[np.float64]

_ATTEMPT = 2001
"""The first of the generations that are drawn here: none that a run uses."""


@dataclass(frozen=True, slots=True)
class SelectorTerms:
    """Terms of E[P_B(A)] - P(A) at a step, for the mean length and for each interval A, (1 + intervals,).

    Attributes:
        drift: E[p_A(X) (s_{t-1}(X) - s_t(X))].
        dependence: -E[Cov(Z, 1{L in A} | X)].
        epsilon: E|s_t(X) - s_{t-1}(X)|; for the mean, weighted by the prompt's relative mean length.
        eta: E|Cov(Z, 1{L in A} | X)|; for the mean, of the relative length.
    """

    drift: Floats
    dependence: Floats
    epsilon: Floats
    eta: Floats

    @property
    def bias(self) -> Floats:
        """What the two terms predict."""
        return self.drift + self.dependence

    @property
    def bound(self) -> Floats:
        """epsilon_t + eta_t(A)."""
        return self.epsilon + self.eta


def selector_terms(
    workload: Workload,
    step: int,
    at: Allocation,
    setup: Setup,
    model: DecodeModel,
    of: Population,
    prompts: int = 1024,
    repeats: int = 64,
) -> SelectorTerms:
    """Estimate the terms by dealing the same prompts into pools again and again, with new generations each time.

    Both steps share generations and pools, so that their difference is the policies'. The prompts with a chance of
    being selected are few, so the averages of absolute values carry a little of the repeats' noise, upwards.

    Args:
        workload: lengths by prompt, attempt and step.
        step: t; t - 1 is the step before.
        at: q and m, the same in both steps.
        setup: N, n, R.
        model: of every replica.
        of: the population whose mean and intervals are meant.
        prompts: a multiple of N.
        repeats: generations of each prompt.
    """
    tau, rng = model.table(setup.groups * setup.responses), np.random.default_rng((step, at.q))
    positions = np.arange(prompts) + (1 << 42)
    orders = rng.permuted(np.tile(np.arange(prompts), (repeats, 1)), axis=1)

    def generations(at_step: int) -> tuple[Floats, Floats]:
        """(repeats, prompts) whether each was selected, and (repeats, prompts, 1 + intervals) features."""
        lengths = np.stack([generate(workload, positions, _ATTEMPT + k, at_step) for k in range(repeats)])
        pools = np.take_along_axis(lengths, orders[..., None], axis=1)
        pools = pools.reshape(-1, setup.groups, setup.responses)
        times = pool_times(pools, setup.replicas - at.m, tau)
        last = times.argsort(axis=-1).argsort(axis=-1) >= setup.groups - at.q
        selected = np.empty((repeats, prompts))
        np.put_along_axis(selected, orders, last.reshape(repeats, prompts).astype(float), axis=1)
        return selected, of.features(lengths)

    chosen, features = generations(step)
    before, _ = generations(step - 1)
    moved = (before - chosen).mean(axis=0)[:, None]
    share = features.mean(axis=0)
    covariance = ((chosen - chosen.mean(axis=0))[..., None] * features).sum(axis=0) / (repeats - 1)
    weight = np.concatenate([share[:, :1], np.ones_like(share[:, 1:])], axis=1)
    return SelectorTerms(
        drift=(share * moved).mean(axis=0),
        dependence=-covariance.mean(axis=0),
        epsilon=(weight * abs(moved)).mean(axis=0),
        eta=abs(covariance).mean(axis=0),
    )
