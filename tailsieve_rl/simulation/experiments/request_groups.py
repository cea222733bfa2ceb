"""Sets of requests with known lengths on two replicas, as the paper's offline studies have them (2.1, A.4)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tailsieve_rl.routing.makespan import Floats, replica_time
from tailsieve_rl.simulation.profiles import profile
from tailsieve_rl.simulation.workloads import math_workload

REQUESTS = 100
SHARE = 0.1
"""Of the requests, isolated whatever their lengths: the fixed policy of A.4."""

GRAPH_SIZES = (1, 2, 4, *range(8, REQUESTS + 8, 8))
"""Batch sizes that vLLM captures CUDA graphs for by default; a smaller batch is padded to the next one."""


def request_group(seed: int, index: int) -> NDArray[np.int64]:
    """(requests,) lengths in tokens of the index-th group of a seed: independent ones of the math workload."""
    prompts = np.arange(REQUESTS) + index * REQUESTS
    workload = math_workload(seed, responses=1, evolving=False)
    return workload.lengths(prompts, np.ones(REQUESTS, np.int64), 0).ravel()


def padded(tau: Floats) -> Floats:
    """The same tau when every batch runs as large as the next captured graph: plateaus with steps between them."""
    return np.array([0.0, *(tau[next(size for size in GRAPH_SIZES if size >= b)] for b in range(1, REQUESTS + 1))])


def random_uniform_time(lengths: NDArray[np.int64], tau: Floats, rng: np.random.Generator) -> float:
    """Time of both replicas, seconds, when each gets half of the requests, drawn at random."""
    shuffled = rng.permutation(lengths)
    half = len(lengths) // 2
    return float(max(replica_time(shuffled[:half], tau), replica_time(shuffled[half:], tau)))


def _table(name: str) -> Floats:
    return profile(name).table(GRAPH_SIZES[-1])


PAPER_SHAPE = "qwen3.5-35b-a3b-tp2"
PADDED_SHAPE = "qwen3.5-35b-a3b-tp2, padded"
SHAPES: Mapping[str, Callable[[], Floats]] = MappingProxyType(
    {
        PAPER_SHAPE: lambda: _table(PAPER_SHAPE)[: REQUESTS + 1],
        "qwen3.5-2b": lambda: _table("qwen3.5-2b")[: REQUESTS + 1],
        "qwen3-4b": lambda: _table("qwen3-4b")[: REQUESTS + 1],
        PADDED_SHAPE: lambda: padded(_table(PAPER_SHAPE)),
    }
)
"""Name -> (requests + 1,) seconds per token: experts, steep where few requests run; dense, flat there; dense with many
keys and values, rising all along; and plateaus, a hard case that the paper does not have."""
