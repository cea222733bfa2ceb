"""The policies of a comparison, under the names that results have."""

from tailsieve_rl.routing.allocation import Allocation
from tailsieve_rl.routing.control import Controller, Hierarchical, Joint
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.policies.graded_oracle import GradedOracle
from tailsieve_rl.routing.policies.least_loaded import LeastLoaded
from tailsieve_rl.routing.policies.policy import RoutingPolicy
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
)
"""`tailsieve` is what training does by default; `tailsieve_hierarchical` has the paper's controller instead, and
`tailsieve_fixed` only its inner loop, on half of the replicas."""

NEEDS_LENGTHS = frozenset({"uniform_oracle", "streamrl_oracle", "seer_oracle", "graded_oracle"})
ADAPTS = frozenset({"tailsieve_fixed", "tailsieve_hierarchical", OURS})


def named_policy(name: str, setup: Setup, start: Allocation, model: DecodeModel | None) -> RoutingPolicy:
    """A policy of COMPARED.

    Args:
        name: which; "streamrl_oracle_K" has K dedicated replicas, "streamrl_oracle" as many as the start's tail pool.
        setup: N, n, R.
        start: allocation that those that adapt start from.
        model: of the replicas; None: those that adapt estimate it online.

    Raises:
        ValueError: for another name, or a graded oracle without a model.
    """
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
