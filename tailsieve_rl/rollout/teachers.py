"""What can be known to be wrong with the teachers of on-policy distillation (`distillation.*`), before Ray starts.

The distillation itself is verl's: its teacher servers, its loss, its routing of prompts to teachers. A response is
handed to its teacher when it has finished generating, by the agent-loop worker.
"""

from typing import Any

from hydra.errors import InstantiationException
from omegaconf import DictConfig

from tailsieve_rl.config.blocks import SettingsError
from tailsieve_rl.engines.emulated.settings import EMULATED

BLOCK = "distillation"


def check_teachers(config: DictConfig) -> None:
    """Refuse a distillation that cannot work.

    Raises:
        SettingsError: naming the key, its value and what would be right.
    """
    distillation = config.get(BLOCK)
    if distillation is None or not distillation.enabled:
        return
    from verl.utils.config import omega_conf_to_dataclass

    teachers = {f"{BLOCK}.teacher_models.{name}": teacher for name, teacher in distillation.teacher_models.items()}
    engines: dict[str, Any] = {f"{name}.inference.name": teacher.inference.name for name, teacher in teachers.items()}
    engines["actor_rollout_ref.rollout.name"] = config.actor_rollout_ref.rollout.name
    for key, engine in engines.items():
        if engine == EMULATED:
            raise SettingsError(key, engine, "emulated engines have no model: there is nothing to distil")
    if config.trainer.v1.trainer_mode == "tailsieve_rollout":
        raise SettingsError(f"{BLOCK}.enabled", True, "nothing is trained in mode tailsieve_rollout: set it to false")
    for name in ("n_gpus_per_node", "nnodes"):
        if distillation[name] < 1:
            raise SettingsError(f"{BLOCK}.{name}", distillation[name], "teachers have devices of their own: 1 or more")
    try:
        omega_conf_to_dataclass(distillation)
    except (InstantiationException, ValueError) as error:
        models = {name: teacher.model_path for name, teacher in teachers.items()}
        raise SettingsError(BLOCK, models, str(error.__cause__ or error)) from None
