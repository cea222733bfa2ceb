"""Entry point of the group `verl.plugins`; `import verl` loads this in EVERY process of a job.

It stays light (no Ray, vLLM or verl trainer at import) and leaves a note with Python's import system instead: when
a verl module that we extend has been imported, the part of ours that extends it is imported too.

verl logs a failing plug-in at DEBUG only, so nothing here raises. What became of each part stands in `STATUS`
and failures are logged as errors; `tailsieve doctor` shows both.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger(__name__)

OK = "ok"
WAITING = "waiting for its verl module"
STATUS: dict[str, str] = {}
"""Part -> OK, WAITING, or the error in words."""


class Part(NamedTuple):
    """`target` ("module" or "module:function") runs once `after` has been imported."""

    name: str
    after: str
    target: str


PARTS = (
    Part("trainer mode", "verl.trainer.ppo.v1", "tailsieve_rl.rollout.trainer"),
    Part("rollout-only mode", "verl.trainer.ppo.v1", "tailsieve_rl.rollout.rollout_only"),
    Part("evaluation mode", "verl.trainer.ppo.v1", "tailsieve_rl.rollout.evaluation"),
    Part("advantage", "verl.trainer.ppo.core_algos", "tailsieve_rl.algorithms.advantage"),
    Part("rollout engines", "verl.workers.rollout.replica", "tailsieve_rl.engines:register"),
)
CPU_PARTS = (
    Part("cpu training engine", "verl.workers.engine", "tailsieve_rl.platforms.cpu_engine:register"),
    Part("cpu process group", "verl.utils.distributed", "tailsieve_rl.platforms.cpu_patches:gloo_backend"),
)


def failures() -> dict[str, str]:
    """The parts that did not register, with the reason of each."""
    return {name: state for name, state in STATUS.items() if state not in (OK, WAITING)}


def _attempt(name: str, action: Callable[[], object]) -> bool:
    try:
        action()
    except Exception as error:
        STATUS[name] = f"{type(error).__name__}: {error}"
        logger.error("tailsieve-rl: %s is NOT active: %s", name, STATUS[name], exc_info=True)
        return False
    STATUS[name] = OK
    return True


def _load(target: str) -> None:
    module_name, _, function = target.partition(":")
    module = importlib.import_module(module_name)
    if function:
        getattr(module, function)()


def _install(part: Part) -> None:
    import wrapt

    STATUS[part.name] = WAITING
    action = functools.partial(_load, part.target)
    wrapt.register_post_import_hook(lambda _module: _attempt(part.name, action), part.after)


def _cpu_platform() -> None:
    """On a machine without an accelerator: make verl and vLLM run. Does nothing anywhere else."""
    from tailsieve_rl.platforms import cpu

    if not cpu.selected():
        return
    from tailsieve_rl.platforms import environment, torchvision_absent, vllm_distribution

    cpu.register()
    environment.apply()
    vllm_distribution.alias()
    torchvision_absent.tolerate()
    for part in CPU_PARTS:
        _install(part)


def activate() -> None:
    """Register everything, once in a process."""
    if _attempt("post-import hooks", lambda: importlib.import_module("wrapt")):
        _attempt("cpu platform", _cpu_platform)
        for part in PARTS:
            _install(part)


_attempt("activation", activate)
