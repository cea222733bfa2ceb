"""The paper's five model configurations (section 4.1) and their GPU, as numbers; `roofline` makes a profile of each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """What one GPU does, and how much of it decoding gets.

    Attributes:
        name: what profiles call it.
        bandwidth: of its memory, bytes a second.
        flops: of its matrix units in BF16 without sparsity, operations a second.
        memory: bytes.
        weight_efficiency: share of the bandwidth that reading dense weights reaches.
        expert_efficiency: share that reading the weights of routed experts reaches.
        state_efficiency: share that reading keys and values, or reading and writing recurrent states, reaches.
        flops_efficiency: share of the operations that large matrix products reach.
        step_s: of each step on the host and around the model: scheduling, inputs, sampling, output.
        request_s: of each step for each token that it samples or verifies: what of that grows with the batch.
        draft_s: of each pass of a drafter around its layers: inputs, attention metadata, sampling, start of its graph.
        layer_s: kernels of a layer that are started, and end, without moving much memory.
        linear_layer_s: more of that in a layer of linear attention.
        expert_layer_s: more of that in a layer with routed experts: router, top-k, permutation.
        all_reduce_s: of one all-reduce over two GPUs, without its data.
        link: all-reduced bytes a second.
    """

    name: str
    bandwidth: float
    flops: float
    memory: float
    weight_efficiency: float
    expert_efficiency: float
    state_efficiency: float
    flops_efficiency: float
    step_s: float
    request_s: float
    draft_s: float
    layer_s: float
    linear_layer_s: float
    expert_layer_s: float
    all_reduce_s: float
    link: float


H100 = Device(
    name="NVIDIA H100 SXM 80GB",
    # NVIDIA's data sheet.
    bandwidth=3.35e12,
    flops=989e12,
    memory=80e9,
    # Estimates, as is all that follows. Streaming kernels reach 80 to 90 % of the data sheet's bandwidth; matrix-vector
    # products a little less; grouped products, with few rows for each of many experts, less again.
    weight_efficiency=0.80,
    expert_efficiency=0.65,
    state_efficiency=0.70,
    # Products with a few hundred rows do not fill the matrix units.
    flops_efficiency=0.55,
    # With CUDA graphs and the next step scheduled while this one runs. A dense 8B model, 16.4 GB of weights and 36
    # layers, then takes 7.2 ms for a token of a single request; about 7 ms is what users report of vLLM.
    step_s=400e-6,
    request_s=2e-6,
    # A quarter of a step's: nothing is scheduled and nothing is sent out between drafts.
    draft_s=100e-6,
    layer_s=18e-6,
    linear_layer_s=8e-6,
    expert_layer_s=20e-6,
    # One-shot all-reduce over NVLink; 450 GB/s a direction on the data sheet, two thirds of it reached.
    all_reduce_s=8e-6,
    link=300e9,
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder as its public config.json describes it. Sizes are in elements.

    Attributes:
        name: of the model.
        hidden: hidden_size.
        layers: num_hidden_layers.
        vocabulary: vocab_size; each step reads the output projection once.
        heads, kv_heads, head: attention heads, key-value heads, head_dim, of the layers with full attention.
        feed_forward: intermediate_size of a dense model; shared_expert_intermediate_size with experts, 0 without one.
        gated_attention: the query projection also makes an output gate, so that it is twice as wide.
        full_every: every so many layers one has full attention, the others linear; 1: all have.
        linear_key_heads, linear_value_heads, linear_head: of the layers with gated DeltaNet attention.
        experts, active_experts, expert_feed_forward: routed experts of a layer, those of a token, their size.
    """

    name: str
    hidden: int
    layers: int
    vocabulary: int
    heads: int
    kv_heads: int
    head: int
    feed_forward: int
    gated_attention: bool = False
    full_every: int = 1
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head: int = 0
    experts: int = 0
    active_experts: int = 0
    expert_feed_forward: int = 0


QWEN35_35B_A3B = Architecture(
    name="Qwen3.5-35B-A3B",
    hidden=2048,
    layers=40,
    vocabulary=248_320,
    heads=16,
    kv_heads=2,
    head=256,
    feed_forward=512,
    gated_attention=True,
    full_every=4,
    linear_key_heads=16,
    linear_value_heads=32,
    linear_head=128,
    experts=256,
    active_experts=8,
    expert_feed_forward=512,
)
QWEN3_30B_A3B = Architecture(
    name="Qwen3-30B-A3B-Instruct-2507",
    hidden=2048,
    layers=48,
    vocabulary=151_936,
    heads=32,
    kv_heads=4,
    head=128,
    feed_forward=0,
    experts=128,
    active_experts=8,
    expert_feed_forward=768,
)
QWEN35_4B = Architecture(
    name="Qwen3.5-4B",
    hidden=2560,
    layers=32,
    vocabulary=248_320,
    heads=16,
    kv_heads=4,
    head=256,
    feed_forward=9216,
    gated_attention=True,
    full_every=4,
    linear_key_heads=16,
    linear_value_heads=32,
    linear_head=128,
)
# Its config.json was not at hand: these are remembered, and they do add up to its 1.9 billion parameters.
QWEN35_2B = Architecture(
    name="Qwen3.5-2B",
    hidden=2048,
    layers=24,
    vocabulary=248_320,
    heads=8,
    kv_heads=2,
    head=256,
    feed_forward=6144,
    gated_attention=True,
    full_every=4,
    linear_key_heads=16,
    linear_value_heads=16,
    linear_head=128,
)
QWEN3_4B = Architecture(
    name="Qwen3-4B-Instruct-2507",
    hidden=2560,
    layers=36,
    vocabulary=151_936,
    heads=32,
    kv_heads=8,
    head=128,
    feed_forward=9728,
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A model as the paper serves it.

    Attributes:
        model: its architecture.
        gpus: of a replica (tensor parallelism).
        replicas: on the paper's server of eight GPUs.
    """

    model: Architecture
    gpus: int
    replicas: int


CONFIGURATIONS = {
    "qwen3.5-35b-a3b-tp2": Configuration(QWEN35_35B_A3B, gpus=2, replicas=4),
    "qwen3-30b-a3b-tp2": Configuration(QWEN3_30B_A3B, gpus=2, replicas=4),
    "qwen3.5-4b": Configuration(QWEN35_4B, gpus=1, replicas=8),
    "qwen3.5-2b": Configuration(QWEN35_2B, gpus=1, replicas=8),
    "qwen3-4b": Configuration(QWEN3_4B, gpus=1, replicas=8),
}
"""Profile name -> configuration; section 4.1."""
