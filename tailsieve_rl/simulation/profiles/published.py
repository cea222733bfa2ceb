"""How many drafts are accepted, as published for heads and drafters of this family, none of it measured by us.

None is of the paper's setting (temperature 0.7, presence penalty 1.5, a policy in training): less should be accepted
there than under greedy decoding, which several of these are from.
"""

from dataclasses import dataclass

import numpy as np

from tailsieve_rl.routing.draft import geometric
from tailsieve_rl.simulation.profiles.drafters import Method


@dataclass(frozen=True, slots=True)
class Published:
    """One measurement.

    Attributes:
        method: what drafted.
        model: that verified.
        workload: prompts.
        drafts: verified at once.
        tokens: that a verification yielded on average, its own one included.
        source: where it stands.
    """

    method: Method
    model: str
    workload: str
    drafts: int
    tokens: float
    source: str

    @property
    def acceptance(self) -> float:
        """The chance a of each draft, given those before it, that yields as many tokens: 1 + a + ... + a^drafts."""
        grid = np.linspace(0.0, 1.0, 1001)
        return float(np.interp(self.tokens, [geometric(a, self.drafts).tokens(self.drafts) for a in grid], grid))


PUBLISHED = (
    Published("mtp", "Qwen3.8-27B", "SPEED-Bench, coding", 3, 2.52, "InferenceX, golden_al_distribution"),
    Published("mtp", "Qwen3.5-0.8B", "eight prompts", 3, 2.738, "ModelTC/LightLLM#1402"),
    Published("mtp", "Qwen3.5-35B-A3B, 4 bits", "one prompt", 1, 1.795, "waybarrios/vllm-mlx#245"),
    Published("mtp", "Qwen3-Next-80B-A3B", "GSM8K", 3, 3.01, "vllm-project/speculators#366"),
    Published("mtp", "Qwen3.6-35B-A3B, quantised", "nine prompts", 3, 3.14, "ggml-org/llama.cpp#22673"),
    Published("mtp", "Qwen3.5-397B-A17B, 4 bits", "SPEED-Bench, coding", 3, 3.39, "InferenceX, golden_al_distribution"),
    Published("mtp", "Qwen3.5 to 3.7, head trained for it", "up to", 1, 1.95, "arXiv 2606.12370, abstract"),
    Published("dflash", "Qwen3.5-35B-A3B", "not stated, 2 to 3", 4, 2.5, "z-lab/dflash#118"),
    Published("dflash", "Qwen3-8B", "MT-Bench", 8, 2.93, "vllm-project/vllm#32206"),
    Published("dflash", "Qwen3.5-2B, community drafter", "mean of its card", 7, 3.49, "rasyosef/Qwen3.5-2B-DFlash2"),
    Published("dflash", "Qwen3-8B", "GSM8K", 15, 6.4, "z-lab/dflash#7"),
    Published("dflash", "Qwen3.5-35B-A3B, drafter of their own", "5 to 6", 7, 5.5, "vllm-project/vllm#50722"),
    Published("dflash", "Qwen3-8B", "GSM8K, no thinking", 15, 8.0, "z-lab/dflash#133"),
)
