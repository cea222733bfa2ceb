"""Routing policies by name."""

from tailsieve_rl.routing.policies.least_loaded import LeastLoaded
from tailsieve_rl.routing.policies.policy import Decision, Lengths, Placement, RoutingPolicy, Setup
from tailsieve_rl.routing.policies.two_pool import TwoPool, default_allocation
from tailsieve_rl.routing.policies.uniform import Uniform

POLICIES = ("uniform", "least_loaded", "two_pool")

__all__ = [
    "POLICIES",
    "Decision",
    "LeastLoaded",
    "Lengths",
    "Placement",
    "RoutingPolicy",
    "Setup",
    "TwoPool",
    "Uniform",
    "default_allocation",
]
