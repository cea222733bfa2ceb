"""`tailsieve train`, also `python -m tailsieve_rl.train`: verl's PPO trainer as a Hydra application that knows recipes.

The configuration is verl's own, and so is what happens with it: after our checks, `verl.trainer.main_ppo` takes over.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from omegaconf import DictConfig

from tailsieve_rl.hydra_app import activate_plugin, run_app

HELP = """\
usage: tailsieve train [--config-name RECIPE] [KEY=VALUE ...]

Train with verl. Without a recipe, the configuration is verl's ppo_trainer as it stands.

  --config-name RECIPE  start from recipes/RECIPE.yaml, of this folder or of the repository:
                        {recipes}
  +try=cpu              the first two steps of a paper/ recipe, here and now: CPU engines, a tiny model, short responses
  KEY=VALUE             set any key of verl's; ++KEY=VALUE sets one that the configuration does not have yet
  --cfg job             print the configuration instead of training
  --hydra-help          show all other options

example: tailsieve train --config-name cpu/countdown trainer.total_training_steps=3"""


def main(argv: Sequence[str] | None = None) -> int:
    """Train, and return the exit code: 2 for bad input, 1 for a failed run."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    return run_app("tailsieve train", arguments, HELP, train)


def train(config: DictConfig) -> None:
    """Check the configuration and hand it to verl."""
    activate_plugin()
    from verl.trainer import main_ppo

    from tailsieve_rl.rollout import checks

    if config.trainer.v1.trainer_mode in checks.MODES:
        checks.check_config(config)
    main_ppo.main(config)  # Hydra's wrapper hands a ready configuration on


if __name__ == "__main__":
    sys.exit(main())
