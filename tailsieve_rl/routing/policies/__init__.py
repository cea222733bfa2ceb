"""Routing policies by name."""

from tailsieve_rl.routing.policies.assigned import Assigned
from tailsieve_rl.routing.policies.graded_oracle import GradedOracle
from tailsieve_rl.routing.policies.least_loaded import LeastLoaded
from tailsieve_rl.routing.policies.policy import Lengths, Placement, RoutingPolicy
from tailsieve_rl.routing.policies.seer_oracle import SeerOracle
from tailsieve_rl.routing.policies.streamrl_oracle import StreamRLOracle
from tailsieve_rl.routing.policies.two_pool import TwoPool, default_allocation
from tailsieve_rl.routing.policies.uniform import Uniform
from tailsieve_rl.routing.policies.uniform_oracle import UniformOracle
from tailsieve_rl.routing.setup import Decision, Setup

ORACLES = ("uniform_oracle", "streamrl_oracle", "seer_oracle", "graded_oracle")
"""Policies that must be told the lengths."""
POLICIES = ("uniform", "least_loaded", "two_pool", *ORACLES)

__all__ = [
    "ORACLES",
    "POLICIES",
    "Assigned",
    "Decision",
    "GradedOracle",
    "LeastLoaded",
    "Lengths",
    "Placement",
    "RoutingPolicy",
    "SeerOracle",
    "Setup",
    "StreamRLOracle",
    "TwoPool",
    "Uniform",
    "UniformOracle",
    "default_allocation",
]
