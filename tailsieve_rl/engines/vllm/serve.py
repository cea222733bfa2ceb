"""`python -m tailsieve_rl.engines.vllm.serve MODEL ...`: `vllm serve`, which the CPU build of vLLM needs help with.

vLLM 0.30's command asks for the version of the distribution "vllm", which the CPU build is not called.
"""

from __future__ import annotations

import sys

from tailsieve_rl.platforms import vllm_distribution


def main() -> None:
    """`vllm serve`, with the arguments given."""
    vllm_distribution.alias()
    from vllm.entrypoints.cli.main import main as vllm

    sys.argv = ["vllm", "serve", *sys.argv[1:]]
    vllm()


if __name__ == "__main__":
    main()
