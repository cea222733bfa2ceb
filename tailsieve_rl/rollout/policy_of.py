"""The routing policy and the controller that a configuration names."""

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.config.settings import BLOCK, Settings
from tailsieve_rl.rollout.speculation import route_depth
from tailsieve_rl.routing.allocation import Allocation, check_allocation
from tailsieve_rl.routing.control import Controller, Fixed, Hierarchical, Joint
from tailsieve_rl.routing.control.tuning import Tuning
from tailsieve_rl.routing.decode_model import DecodeModel, ProfileError, load_profile
from tailsieve_rl.routing.policies import (
    ORACLES,
    GradedOracle,
    LeastLoaded,
    RoutingPolicy,
    SeerOracle,
    Setup,
    StreamRLOracle,
    TwoPool,
    Uniform,
    UniformOracle,
    default_allocation,
)


def starting_allocation(settings: Settings, setup: Setup) -> Allocation:
    """The configured allocation, or the default one.

    Raises:
        SettingsError: if it does not fit N and R.
    """
    groups, replicas = settings.allocation.initial_groups, settings.allocation.initial_replicas
    if groups is None or replicas is None:
        return default_allocation(setup)
    allocation = Allocation(groups, replicas)
    try:
        check_allocation(allocation, setup.groups, setup.replicas)
    except ValueError as error:
        raise SettingsError(f"{BLOCK}.allocation", str(allocation), str(error)) from None
    return allocation


def make_policy(settings: Settings, setup: Setup) -> RoutingPolicy:
    """The routing policy that the settings name, with their speculation."""
    return route_depth(_routing(settings, setup), settings.speculation, decode_model_of(settings))


def _routing(settings: Settings, setup: Setup) -> RoutingPolicy:
    if settings.policy == "uniform":
        return Uniform()
    if settings.policy == "least_loaded":
        return LeastLoaded()
    if settings.policy in ORACLES:
        return _oracle(settings, setup)
    return TwoPool(_controller(settings, starting_allocation(settings, setup)), settings.dispatch)


def _oracle(settings: Settings, setup: Setup) -> RoutingPolicy:
    """A policy that is told the lengths."""
    if settings.policy == "graded_oracle":
        model = decode_model_of(settings)
        if model is None:
            right = "policy graded_oracle needs decode_model.source=file and the path of a decode profile"
            raise SettingsError(f"{BLOCK}.decode_model.path", None, right)
        return GradedOracle(model)
    if settings.policy == "streamrl_oracle":
        return StreamRLOracle(starting_allocation(settings, setup).m)
    return UniformOracle() if settings.policy == "uniform_oracle" else SeerOracle()


def decode_model_of(settings: Settings) -> DecodeModel | None:
    """The profile that is named; None: estimated online."""
    return profile_at(f"{BLOCK}.decode_model.path", settings.decode_model.path)


def profile_at(key: str, path: str | None) -> DecodeModel | None:
    """The decode profile that a setting names; None if it names none.

    Raises:
        SettingsError: naming the key, if it cannot be read.
    """
    if path is None:
        return None
    try:
        return load_profile(path)
    except ProfileError as error:
        raise SettingsError(key, path, str(error)) from None


def _controller(settings: Settings, allocation: Allocation) -> Controller:
    """The controller that the settings name."""
    given = settings.controller
    if given.name == "fixed":
        return Fixed(allocation)
    model = decode_model_of(settings)
    tuning = Tuning(
        max_change=given.max_change,
        switch_threshold=given.switch_threshold,
        history_steps=given.history_steps,
        samples=given.samples,
        by_group=settings.dispatch == "group",
        seed=given.seed,
    )
    if given.name == "joint":
        return Joint(allocation, model, tuning, given.smoothing, given.isolation_gain)
    return Hierarchical(allocation, model, tuning, given.ema, given.momentum, given.inner_threshold)
