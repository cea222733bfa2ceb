"""tau(b) from the bytes that a decoding step moves and the operations that it does."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.routing.decode_model import MODELLED, DecodeModel, DecodePoint
from tailsieve_rl.simulation.profiles.configurations import Architecture, Configuration, Device

Floats = NDArray[np.float64]

WEIGHT_BYTES = 2
"""BF16 weights, keys and values: what the paper's models are published in."""

STATE_BYTES = 4
"""Recurrent states are kept in FP32 (`mamba_ssm_dtype` of Qwen3.5's config.json)."""

CONTEXT = 2048
"""Tokens whose keys and values a request reads, the same at every b: an estimate. A prompt has some 200 tokens. The
mean over all tokens of the math workload is at position 3,300, but the crowded part of a step, where this matters, is
earlier."""

BATCHES = tuple(2**i for i in range(13))
"""b = 1, 2, 4, ..., 4096. Not all of them fit into memory; `fits_b` in a profile says how many do."""

MEMORY_USED = 0.9
"""Share of a GPU that the engine fills (vLLM's default gpu_memory_utilization)."""


def roofline(configuration: Configuration, device: Device) -> DecodeModel:
    """A modelled profile: where memory or the matrix units bind, plus what a step costs whatever it computes.

    Args:
        configuration: model and GPUs.
        device: each of the GPUs.

    Returns:
        points in seconds of a step, rounded to nanoseconds; kind "modelled".
    """
    gpus, tau = configuration.gpus, step_s(configuration, device)
    return DecodeModel(
        tuple(DecodePoint(b, round(float(seconds), 9)) for b, seconds in zip(BATCHES, tau, strict=True)),
        model=configuration.model.name,
        device=f"{gpus} x {device.name}" if gpus > 1 else device.name,
        engine="roofline",
        kind=MODELLED,
        notes={
            "how": "memory and compute roofline with launch overhead, see tailsieve_rl/simulation/profiles",
            "context_tokens": CONTEXT,
            "fits_b": _fits(configuration, device),
        },
    )


def step_s(configuration: Configuration, device: Device, tokens: int = 1) -> Floats:
    """(BATCHES,) seconds of an engine's step with so many tokens of each request.

    A step that verifies drafts has several. They share the request's keys and values and the reading of its states;
    a state is written after each of them, so that the engine can go back to any, and each is sampled.
    """
    rows = np.array(BATCHES) * tokens
    return device.step_s + rows * device.request_s + forward_s(configuration.model, configuration.gpus, device, tokens)


def forward_s(model: Architecture, gpus: int, device: Device, tokens: int = 1) -> Floats:
    """(BATCHES,) seconds of a forward pass with so many tokens of each request.

    Weights are split over the GPUs of a replica. Routing is taken to be uniform and independent over experts, so that b
    requests touch experts * (1 - (1 - active / experts)^b) of a layer: real routing is skewed and touches fewer.
    """
    b = np.array(BATCHES)
    rows = b * tokens
    bandwidth = device.bandwidth * gpus
    experts = model.layers * expert_parameters(model)
    dense_s = product_s(dense_parameters(model), rows, gpus, device)
    expert_s = np.maximum(
        WEIGHT_BYTES * experts * distinct_experts(model, rows) / (bandwidth * device.expert_efficiency),
        2 * rows * experts * model.active_experts / (device.flops * gpus * device.flops_efficiency),
    )
    state_s = b * moved_bytes_of_a_request(model, tokens) / (bandwidth * device.state_efficiency)
    return dense_s + expert_s + state_s + _launches_s(model, gpus, device, rows)


def product_s(parameters: int, rows: NDArray[np.int64], gpus: int, device: Device) -> Floats:
    """Seconds of multiplying rows by dense weights: what takes longer, reading or multiplying, hides the other."""
    return np.maximum(
        WEIGHT_BYTES * parameters / (device.bandwidth * gpus * device.weight_efficiency),
        2 * rows * parameters / (device.flops * gpus * device.flops_efficiency),
    )


def full_layers(model: Architecture) -> int:
    """Layers with full attention; the others have linear attention."""
    return model.layers // model.full_every


def dense_parameters(model: Architecture) -> int:
    """Parameters that every step reads: all but routed experts and the input embedding, of which it reads b rows."""
    queries = model.hidden * model.heads * model.head
    full = queries * (2 if model.gated_attention else 1)  # queries, and the gate
    full += 2 * model.hidden * model.kv_heads * model.head + queries  # keys and values, output
    keys, values = model.linear_key_heads * model.linear_head, model.linear_value_heads * model.linear_head
    linear = model.hidden * (2 * keys + values)  # queries, keys, values
    linear += 2 * model.hidden * values + 2 * model.hidden * model.linear_value_heads  # gate and output, decays
    feed_forward = 3 * model.hidden * model.feed_forward + model.hidden * model.experts  # gate, up, down; router
    attention = full_layers(model) * full + (model.layers - full_layers(model)) * linear
    return attention + model.layers * feed_forward + model.vocabulary * model.hidden


def expert_parameters(model: Architecture) -> int:
    """Parameters of one routed expert: gate, up and down projection."""
    return 3 * model.hidden * model.expert_feed_forward


def distinct_experts(model: Architecture, b: ArrayLike) -> Floats:
    """Expected number of a layer's experts that b requests touch, if each routes uniformly and on its own."""
    requests = np.asarray(b, float)
    if not model.experts:
        return np.zeros_like(requests)
    return model.experts * (1.0 - (1.0 - model.active_experts / model.experts) ** requests)


def kept_bytes_of_a_request(model: Architecture) -> tuple[int, int]:
    """Bytes of keys and values at the mean context, and of recurrent states, on all GPUs of a replica."""
    keys_and_values = full_layers(model) * 2 * model.kv_heads * model.head * WEIGHT_BYTES * CONTEXT
    states = model.linear_value_heads * model.linear_head**2 * STATE_BYTES
    return keys_and_values, (model.layers - full_layers(model)) * states


def moved_bytes_of_a_request(model: Architecture, tokens: int = 1) -> int:
    """Bytes that a step moves for each request: keys and values and states are read, a state written for each token."""
    keys_and_values, states = kept_bytes_of_a_request(model)
    return keys_and_values + (1 + tokens) * states


def _launches_s(model: Architecture, gpus: int, device: Device, rows: NDArray[np.int64]) -> Floats:
    """What the layers cost beside moving and multiplying."""
    linear = model.layers - full_layers(model)
    fixed = model.layers * device.layer_s + linear * device.linear_layer_s
    fixed += model.layers * device.expert_layer_s if model.experts else 0.0
    reduces = 2 * model.layers if gpus > 1 else 0  # after attention and after the feed-forward
    all_reduce_s = device.all_reduce_s + rows * model.hidden * WEIGHT_BYTES / device.link
    return fixed + reduces * all_reduce_s


def _fits(configuration: Configuration, device: Device) -> int:
    """Requests at the mean context whose keys, values and states fit beside the weights."""
    model = configuration.model
    weights = dense_parameters(model) + model.layers * model.experts * expert_parameters(model)
    free = MEMORY_USED * device.memory * configuration.gpus - WEIGHT_BYTES * weights
    return int(free / sum(kept_bytes_of_a_request(model)))
