"""Controllers of (q, m) by name."""

from tailsieve_rl.routing.control.controller import Controller, Fixed
from tailsieve_rl.routing.control.hierarchical import Hierarchical
from tailsieve_rl.routing.control.joint import Joint

CONTROLLERS = ("hierarchical", "joint", "fixed")

__all__ = ["CONTROLLERS", "Controller", "Fixed", "Hierarchical", "Joint"]
