"""Routing policies by name."""

from tailsieve_rl.routing.policies.least_loaded import LeastLoaded
from tailsieve_rl.routing.policies.policy import Lengths, Placement, RoutingPolicy
from tailsieve_rl.routing.policies.two_pool import TwoPool, default_allocation
from tailsieve_rl.routing.policies.uniform import Uniform
from tailsieve_rl.routing.setup import Decision, Setup

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
