"""The policies of a comparison, under the names that results have."""

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Controller, Hierarchical, Joint
from tailsieve_rl.routing.control.depth import FixedDepths
from tailsieve_rl.routing.control.governed_depth import GovernedDepths
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import Depth, DraftDepths
from tailsieve_rl.routing.policies.graded_oracle import GradedOracle
from tailsieve_rl.routing.policies.least_loaded import LeastLoaded
from tailsieve_rl.routing.policies.policy import RoutingPolicy
from tailsieve_rl.routing.policies.route_depth import RouteDepth
from tailsieve_rl.routing.policies.seer_oracle import SeerOracle
from tailsieve_rl.routing.policies.streamrl_oracle import StreamRLOracle
from tailsieve_rl.routing.policies.two_pool import TwoPool
from tailsieve_rl.routing.policies.uniform import Uniform
from tailsieve_rl.routing.policies.uniform_oracle import UniformOracle
from tailsieve_rl.routing.setup import Setup

BASELINE, OURS = "uniform", "tailsieve"
COMPARED = (
    BASELINE,
    "least_loaded",
    "uniform_oracle",
    "streamrl_oracle",
    "seer_oracle",
    "graded_oracle",
    "tailsieve_fixed",
    "tailsieve_hierarchical",
    OURS,
    "uniform_governed",
    "uniform_batch_schedule",
    "tailsieve_batch_schedule",
    "tailsieve_route_depth",
)
"""`tailsieve` is what training does by default; `tailsieve_hierarchical` has the paper's controller instead, and
`tailsieve_fixed` only its inner loop, on half of the replicas. The last four draft: at governed depths, or at those
that are best for each batch size; `uniform_depth_K` drafts K tokens everywhere."""
UNIFORM_DEPTH = "uniform_depth_"
BEST_UNIFORM_DEPTH = "uniform_best_depth"
"""In results: the best of the `uniform_depth_K` that ran."""
ROUTE_DEPTH = "tailsieve_route_depth"

NEEDS_LENGTHS = frozenset({"uniform_oracle", "streamrl_oracle", "seer_oracle", "graded_oracle"})
SCHEDULES = frozenset({"uniform_batch_schedule", "tailsieve_batch_schedule"})
DRAFTS = frozenset({"uniform_governed", ROUTE_DEPTH, *SCHEDULES})
ADAPTS = frozenset(
    {"tailsieve_fixed", "tailsieve_hierarchical", OURS, "uniform_governed", ROUTE_DEPTH, "tailsieve_batch_schedule"}
)


def is_named(name: str) -> bool:
    """Whether a comparison has such a policy."""
    return name in COMPARED or uniform_depth(name) is not None


def uniform_depth(name: str) -> int | None:
    """K of `uniform_depth_K`."""
    depth = name.removeprefix(UNIFORM_DEPTH)
    return int(depth) if name != depth and depth.isdecimal() else None


def drafts(name: str) -> bool:
    """Whether a policy needs engines that draft."""
    return name in DRAFTS or bool(uniform_depth(name))


def named_policy(
    name: str, setup: Setup, start: Allocation, model: DecodeModel | None, max_depth: int = 0
) -> RoutingPolicy:
    """A policy of a comparison.

    Args:
        name: which; "streamrl_oracle_K" has K dedicated replicas, "streamrl_oracle" as many as the start's tail pool.
        setup: N, n, R.
        start: allocation that those that adapt start from.
        model: of the replicas; None: those that adapt estimate it online.
        max_depth: deepest draft that governed depths and schedules may have.

    Raises:
        ValueError: for another name, or a graded oracle or a schedule by batch size without a model.
    """
    depth = uniform_depth(name)
    if depth is not None:
        return RouteDepth(Uniform(), FixedDepths(_everywhere(depth)))
    if name in SCHEDULES:
        if model is None:
            raise ValueError(f"{name} needs a decode model with draft depths")
        schedule = FixedDepths(_everywhere(model.fastest_depths(setup.groups * setup.responses, max_depth)))
        return RouteDepth(Uniform() if name.startswith(BASELINE) else TwoPool(Joint(start)), schedule)
    if name in DRAFTS:
        governed = GovernedDepths(max_depth)
        return RouteDepth(Uniform() if name.startswith(BASELINE) else TwoPool(Joint(start)), governed)
    if name.startswith("streamrl_oracle"):
        dedicated = name.removeprefix("streamrl_oracle").removeprefix("_") or str(max(1, start.m))
        return StreamRLOracle(dedicated=int(dedicated))
    if name == "graded_oracle":
        if model is None:
            raise ValueError("graded_oracle needs a decode model")
        return GradedOracle(model)
    if name in ADAPTS:
        half = Allocation(start.q, setup.replicas // 2)
        controllers: dict[str, Controller] = {
            "tailsieve_fixed": Hierarchical(half, model, outer=False),
            "tailsieve_hierarchical": Hierarchical(start, model),
            OURS: Joint(start, model),
        }
        return TwoPool(controllers[name])
    plain: dict[str, RoutingPolicy] = {
        BASELINE: Uniform(),
        "least_loaded": LeastLoaded(),
        "uniform_oracle": UniformOracle(),
        "seer_oracle": SeerOracle(),
    }
    if name not in plain:
        raise ValueError(f"{name!r} must be one of {', '.join(COMPARED)}")
    return plain[name]


def _everywhere(depth: Depth) -> DraftDepths:
    return DraftDepths(depth, depth, depth)
