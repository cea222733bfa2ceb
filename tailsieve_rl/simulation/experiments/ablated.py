"""TailSieve with a component switched off, and workloads with one property varied, for the ablations (A.2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Fixed, Hierarchical, Joint
from tailsieve_rl.routing.control.tuning import Tuning
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.plan import GroupTask
from tailsieve_rl.routing.policies import RoutingPolicy, Setup, TwoPool, Uniform, default_allocation
from tailsieve_rl.routing.policies.policy import NoTail, SelfPlacing
from tailsieve_rl.simulation.experiments.cells import measure
from tailsieve_rl.simulation.experiments.tables import MEASURED
from tailsieve_rl.simulation.workloads import Workload

CONVERGE = 24
"""Steps before the measured ones: the hierarchical controller moves one variable at a time."""
POPULATION = np.arange(1 << 42, (1 << 42) + 8192)
"""Prompts that mean lengths are taken from: no run gets there."""

Ints = NDArray[np.int64]
Run = Callable[[Setup, DecodeModel, Workload], RoutingPolicy]


@dataclass(frozen=True)
class Capped:
    """A `Workload` with its lengths cut at a cap, then scaled by `factor` so that the mean length stays the same."""

    workload: Workload
    cut: int
    factor: float

    @property
    def name(self) -> str:
        return f"{self.workload.name}_cap_{self.cut}"

    @property
    def responses(self) -> int:
        return self.workload.responses

    @property
    def cap(self) -> int:
        return round(self.cut * self.factor)

    def lengths(self, prompts: Ints, attempts: Ints, step: int) -> Ints:
        """(groups, n) tokens; see `Workload.lengths`."""
        cut = np.minimum(self.workload.lengths(prompts, attempts, step), self.cut)
        return np.clip(np.rint(cut * self.factor), 1, None).astype(np.int64)


def capped(workload: Workload, cut: int) -> Capped:
    """Cut at so many tokens: the same requests and the same tokens in all, with a shorter longest output."""
    lengths = workload.lengths(POPULATION, np.ones_like(POPULATION), 0)
    return Capped(workload, cut, float(lengths.mean() / np.minimum(lengths, cut).mean()))


@dataclass(frozen=True, slots=True)
class RandomTail(NoTail, SelfPlacing):
    """Selection off: q random groups of the step run on m replicas, the others on the rest, and all complete.

    No cutoff tells which groups are slow, so none is deferred; the order of a step's prompts is random already.
    """

    at: Allocation
    name: str = "random_tail"

    def place(
        self, group: GroupTask, session: int, responses: int, pool: Sequence[str], load: Mapping[str, int]
    ) -> str:
        # Medians of q and of m may be those of different steps, one of them 0: there is then no tail pool.
        q, m = (self.at.q, self.at.m) if self.at.q and self.at.m else (0, 0)
        tail = group.ordinal < q
        chosen, ordinal = (pool[:m], group.ordinal) if tail else (pool[m:], group.ordinal - q)
        return chosen[(ordinal * responses + session) % len(chosen)]


def _full(setup: Setup, model: DecodeModel, workload: Workload) -> TwoPool:
    return TwoPool(Joint(default_allocation(setup), model))


def _without_selection(setup: Setup, model: DecodeModel, workload: Workload) -> RoutingPolicy:
    """At the allocation that the full system has come to on the same stream."""
    return RandomTail(measure(_full(setup, model, workload), setup, workload, model, CONVERGE, MEASURED).allocation)


def _without_inner(setup: Setup, model: DecodeModel, workload: Workload) -> RoutingPolicy:
    return TwoPool(Hierarchical(default_allocation(setup), model, inner_threshold=float("inf")))


def _without_outer(setup: Setup, model: DecodeModel, workload: Workload) -> RoutingPolicy:
    """At the paper's fixed split, half of the replicas."""
    start = Allocation(default_allocation(setup).q, max(1, setup.replicas // 2))
    return TwoPool(Hierarchical(start, model, outer=False))


def _by_group(setup: Setup, model: DecodeModel, workload: Workload) -> RoutingPolicy:
    return TwoPool(Joint(default_allocation(setup), model, Tuning(by_group=True)), dispatch="group")


CORE: Mapping[str, Run] = MappingProxyType({"uniform": lambda setup, model, workload: Uniform(), "tailsieve": _full})
COMPONENTS: Mapping[str, Run] = MappingProxyType(
    {
        **CORE,
        "hierarchical": lambda setup, model, workload: TwoPool(Hierarchical(default_allocation(setup), model)),
        "no_selection": _without_selection,
        "no_inner_loop": _without_inner,
        "no_outer_loop": _without_outer,
        "no_loops": lambda setup, model, workload: TwoPool(Fixed(default_allocation(setup))),
        "no_request_dispatch": _by_group,
    }
)
