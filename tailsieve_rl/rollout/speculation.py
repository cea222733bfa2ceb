"""From the settings of speculation to what engines start with and what the routing policy decides."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from tailsieve_rl.config.speculation import NEEDS_DRAFTER, SpeculationSettings
from tailsieve_rl.engines.emulated.settings import EMULATED
from tailsieve_rl.engines.vllm.speculation_key import ENGINE_KEY
from tailsieve_rl.routing.control.depth import DepthController, FixedDepths
from tailsieve_rl.routing.control.governed_depth import GovernedDepths
from tailsieve_rl.routing.decode_model import DecodeModel
from tailsieve_rl.routing.draft import DraftDepths
from tailsieve_rl.routing.policies import RoutingPolicy
from tailsieve_rl.routing.policies.route_depth import RouteDepth


def start_with_drafts(config: DictConfig, settings: SpeculationSettings, tail_replicas: int) -> None:
    """Have the job's engines start with the drafters that the settings ask for; emulated ones need none.

    Args:
        config: the job's; changed in place.
        settings: of speculation.
        tail_replicas: of the starting allocation.
    """
    if settings.enabled and config.actor_rollout_ref.rollout.name != EMULATED:
        key = f"actor_rollout_ref.rollout.engine_kwargs.vllm.{ENGINE_KEY}"
        OmegaConf.update(config, key, engine_speculation(settings, tail_replicas), force_add=True)


def engine_speculation(settings: SpeculationSettings, tail_replicas: int) -> dict[str, Any]:
    """vLLM's `speculative_config` for every replica.

    An engine has one drafter for life. Where the pools have different methods, as many replicas as the tail pool starts
    with get the tail's, and the others the bulk pool's; whatever pool they work in later, they draft with their own.

    Args:
        settings: that draft.
        tail_replicas: of the starting allocation.

    Returns:
        The configurations `tail` and `bulk`, the same where the pools do not differ; `tail_replicas`; `depths`, those
        that will be set, None for any.
    """
    methods = settings.methods
    tail, bulk = (_speculative_config(settings, method) for method in (methods[0], methods[-1]))
    depths = None if settings.mode == "governed" else sorted({0, *_fixed(settings)})
    return {"tail": tail, "bulk": bulk, "tail_replicas": tail_replicas, "depths": depths}


def route_depth(policy: RoutingPolicy, settings: SpeculationSettings, model: DecodeModel | None) -> RoutingPolicy:
    """The policy with the draft depths that the settings ask for; the policy itself where nothing drafts.

    Args:
        policy: routes.
        settings: of speculation.
        model: a decode profile; it is used if it has points for every depth. None: estimated from the run.
    """
    if not settings.enabled:
        return policy
    off = frozenset(name for name in ("tail", "bulk") if getattr(settings, name).method is None)
    return RouteDepth(policy, _controller(settings, model), settings.min_acceptance, off)


def _controller(settings: SpeculationSettings, model: DecodeModel | None) -> DepthController:
    if settings.mode == "fixed":
        return FixedDepths(DraftDepths(*_fixed(settings)))
    depths = range(settings.depth + 1)
    known = model if model and set(depths) <= set(model.depths) else None
    return GovernedDepths(settings.depth, known, apart=len(settings.methods) > 1)


def _fixed(settings: SpeculationSettings) -> tuple[int, int, int]:
    """Depths of the tail pool, of the bulk pool, and of all replicas under uniform routing."""
    tail, bulk, uniform = settings.tail.depth or 0, settings.bulk.depth or 0, settings.uniform.depth
    return tail, bulk, round((tail + bulk) / 2) if uniform is None else uniform


def _speculative_config(settings: SpeculationSettings, method: str) -> dict[str, Any]:
    config = {"method": method, "num_speculative_tokens": settings.depth}
    return {**config, "model": settings.drafter} if method in NEEDS_DRAFTER else config
