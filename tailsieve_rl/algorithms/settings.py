"""`algorithm.*` as the `tailsieve` trainer mode reads it: names checked, `dr_grpo` put in verl's own terms.

Dr.GRPO (paper A.3) centres rewards on their group's mean and does not divide by the standard deviation. verl has it as
`grpo` with `norm_adv_by_std_in_grpo=false`, and takes the path for responses with several outputs (one advantage a
response, from its last output) for the name `grpo` only. Hence the translation.

The paper does not state how the loss is aggregated over tokens; `actor_rollout_ref.actor.loss_agg_mode` stays as it is
(verl's default is `token-mean`; the one of the Dr.GRPO publication is `seq-mean-token-sum-norm`).
"""

from dataclasses import dataclass

from omegaconf import DictConfig, open_dict

from tailsieve_rl.config.blocks import SettingsError

DR_GRPO = "dr_grpo"
GRPO = "grpo"


@dataclass(frozen=True, slots=True)
class AlgorithmSettings:
    """How advantages are computed, in verl's terms.

    Attributes:
        adv_estimator: a name in verl's registry; `dr_grpo`, which may be given too, is `grpo` without the division.
        norm_adv_by_std_in_grpo: divide by the group's standard deviation; only `grpo` reads it.
    """

    adv_estimator: str
    norm_adv_by_std_in_grpo: bool


def read_algorithm(config: DictConfig) -> AlgorithmSettings:
    """Read and check `config.algorithm`.

    `dr_grpo` wins over `norm_adv_by_std_in_grpo`: verl's default for that key is true, so an explicit true, which
    would contradict the name, cannot be told from one that nobody wrote.

    Raises:
        SettingsError: an unknown estimator, or a flag that is no boolean.
    """
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY

    name = config.algorithm.adv_estimator
    name = getattr(name, "value", name)
    known = sorted({*ADV_ESTIMATOR_REGISTRY, DR_GRPO})
    if name not in known:
        raise SettingsError("algorithm.adv_estimator", name, f"must be one of {', '.join(known)}")
    by_std = config.algorithm.get("norm_adv_by_std_in_grpo", True)
    if not isinstance(by_std, bool):
        raise SettingsError("algorithm.norm_adv_by_std_in_grpo", by_std, "must be true or false")
    if name == DR_GRPO:
        return AlgorithmSettings(GRPO, norm_adv_by_std_in_grpo=False)
    return AlgorithmSettings(name, by_std)


def normalise_algorithm(config: DictConfig) -> None:
    """Check `config.algorithm` and write it back in verl's own terms; to be called before verl reads it."""
    settings = read_algorithm(config)
    with open_dict(config):
        config.algorithm.adv_estimator = settings.adv_estimator
        config.algorithm.norm_adv_by_std_in_grpo = settings.norm_adv_by_std_in_grpo
