"""Dr.GRPO as a name that verl's own registry knows: `algorithm.adv_estimator=dr_grpo`.

Registered when this module is imported. The `tailsieve` trainer mode does not call it: it turns the name into verl's
`grpo` without the division by the standard deviation (see `settings.py`), because verl's treatment of responses with
several outputs hangs on the name `grpo`. Under verl's other trainer modes the name works through this function, and
the result is the same as long as each response has one output.
"""

from typing import Any

import numpy as np
import torch
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, register_adv_est

from tailsieve_rl.algorithms.settings import DR_GRPO


@register_adv_est(DR_GRPO)
def compute_dr_grpo_outcome_advantage(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: np.ndarray,
    **_unused: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each response's reward minus its group's mean reward, on every token of the response.

    Args:
        token_level_rewards: (batch, response length); their sum is the response's reward.
        response_mask: (batch, response length), 1 on tokens that the policy wrote.
        index: (batch,) uid of each response's prompt; equal uids form a group.

    Returns:
        Advantages and returns, the same tensor, (batch, response length). A group of one keeps its reward.
    """
    return compute_grpo_outcome_advantage(
        token_level_rewards=token_level_rewards,
        response_mask=response_mask,
        index=index,
        norm_adv_by_std_in_grpo=False,
    )
