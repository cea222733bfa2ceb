"""The one place for functions of verl that must be replaced to run on CPU. One entry:

gloo_backend
    version   verl 0.9.1, verl/utils/distributed.py: initialize_global_process_group_ray
    why       builds "cpu:gloo,<device>:<backend>", which for device "cpu" names the same device twice; torch refuses
    the end   when tests/unit/test_plugin.py finds that verl gives another backend without it
"""

from __future__ import annotations

import functools
from typing import Any

BACKEND = "cpu:gloo"


def gloo_backend() -> None:
    """Have verl start its process group with one gloo backend for the CPU."""
    from verl.utils import distributed

    original = distributed.initialize_global_process_group_ray

    @functools.wraps(original)
    def initialize_global_process_group_ray(timeout_second: Any = None, backend: str | None = None) -> Any:
        return original(timeout_second, backend or BACKEND)

    distributed.initialize_global_process_group_ray = initialize_global_process_group_ray
