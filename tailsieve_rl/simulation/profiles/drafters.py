"""What drafts for each of the paper's configurations (section 3.4), as numbers: the MTP heads and DFlash's drafters."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from tailsieve_rl.simulation.profiles.configurations import CONFIGURATIONS, Architecture
from tailsieve_rl.simulation.profiles.roofline import dense_parameters, expert_parameters

Method: TypeAlias = Literal["mtp", "dflash"]


@dataclass(frozen=True, slots=True)
class Drafter:
    """A drafter of a model; it drafts with the model's own embedding and output projection.

    Attributes:
        layers: its decoder layers; without a vocabulary.
        fused: hidden vectors that its input projection makes one of, for each token.
        at_once: one pass drafts all tokens (block diffusion), else each draft takes a pass.
    """

    layers: Architecture
    fused: int
    at_once: bool

    @property
    def projection(self) -> int:
        """Parameters of the input projection."""
        return self.fused * self.layers.hidden**2

    @property
    def parameters(self) -> int:
        """Its own, those of experts included."""
        experts = self.layers.layers * self.layers.experts * expert_parameters(self.layers)
        return dense_parameters(self.layers) + self.projection + experts


def mtp_head(name: str) -> Drafter:
    """The head of a configuration: a layer like the model's with full attention, over a hidden state and an embedding.

    So it is in Qwen3.5 (`mtp_num_hidden_layers` 1; vLLM's qwen3_5_mtp), with routed experts of its own where the model
    has them. Qwen3 models are published without one: theirs is what it would be.

    Args:
        name: one of PROFILES.
    """
    model = CONFIGURATIONS[name].model
    return Drafter(replace(model, layers=1, full_every=1, vocabulary=0), fused=2, at_once=False)


def dflash_drafter(name: str) -> Drafter:
    """DFlash's drafter of a configuration.

    Args:
        name: one of PROFILES.
    """
    return _DFLASH[name]


def _block(name: str, layers: int, heads: int, kv_heads: int, feed_forward: int, fused: int) -> Drafter:
    model = CONFIGURATIONS[name].model
    drafter = Architecture(
        name=f"DFlash drafter of {model.name}",
        hidden=model.hidden,
        layers=layers,
        vocabulary=0,
        heads=heads,
        kv_heads=kv_heads,
        head=128,
        feed_forward=feed_forward,
    )
    return Drafter(drafter, fused, at_once=True)


_DFLASH = MappingProxyType(
    {
        # z-lab/Qwen3.6-35B-A3B-DFlash, whose target has the same sizes: its 385.9 million parameters come out.
        "qwen3.5-35b-a3b-tp2": _block(
            "qwen3.5-35b-a3b-tp2", layers=6, heads=32, kv_heads=8, feed_forward=6144, fused=8
        ),
        # Published for Qwen3-Coder-30B-A3B, not for this model, and its config was not at hand: as the one above.
        "qwen3-30b-a3b-tp2": _block("qwen3-30b-a3b-tp2", layers=6, heads=32, kv_heads=8, feed_forward=6144, fused=8),
        # z-lab/Qwen3.5-4B-DFlash: shaped like the first and as wide as its target, it has the published 1.18 GiB.
        "qwen3.5-4b": _block("qwen3.5-4b", layers=6, heads=32, kv_heads=8, feed_forward=9216, fused=8),
        # No official one; rasyosef/Qwen3.5-2B-DFlash2, a community one, has these layers.
        "qwen3.5-2b": _block("qwen3.5-2b", layers=4, heads=16, kv_heads=4, feed_forward=6144, fused=5),
        # z-lab/Qwen3-4B-DFlash-b16, after SpecForge's configs/qwen3-4b-dflash.json.
        "qwen3-4b": _block("qwen3-4b", layers=5, heads=32, kv_heads=8, feed_forward=9728, fused=5),
    }
)
