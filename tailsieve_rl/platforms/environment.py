"""Environment variables that a CPU run needs.

They are set with setdefault, so a value of the user's own always wins, and early (`import verl` loads the plug-in),
so that the processes Ray starts on this machine inherit them; processes of another node set their own the same way.
"""

from __future__ import annotations

import os

VARIABLES = {
    # One decision for the whole job: every process that inherits this agrees with the driver.
    "VERL_PLATFORM": "cpu",
    # Compiling costs 15-20 s a process and gains nothing on the small models that fit a CPU.
    "TORCHDYNAMO_DISABLE": "1",
    # vLLM accepts the in-process executor ("uni") on CPU only with this: one process less per replica,
    # which halves the start-up time and saves about 0.5 GB.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # GiB of KV cache a replica may take; vLLM's default is a share of the whole machine's memory for each of them.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # vLLM's automatic binding puts every replica of a machine on the same cores.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # R replicas and R trainer ranks share the cores: more threads each only makes them wait for one another.
    "OMP_NUM_THREADS": "1",
    # vLLM's n-gram drafter brings numba, whose pool would else make PyTorch's threads two again, which wait for each
    # other.
    "NUMBA_NUM_THREADS": "1",
}


def apply() -> dict[str, str]:
    """Set what is unset; return what was set."""
    added = {name: value for name, value in VARIABLES.items() if name not in os.environ}
    os.environ.update(added)
    return added


def current() -> dict[str, str]:
    """The variables as they stand, for processes that do not inherit this one's environment."""
    return {name: os.environ.get(name, value) for name, value in VARIABLES.items()}
