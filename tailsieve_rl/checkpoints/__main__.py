"""Write a checkpoint: `python -m tailsieve_rl.checkpoints KIND --out DIR`; `--help` has an example of each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tailsieve_rl.checkpoints.dflash import write_dflash
from tailsieve_rl.checkpoints.qwen3 import write_qwen3
from tailsieve_rl.checkpoints.qwen3_5 import write_qwen3_5_mtp
from tailsieve_rl.checkpoints.weights import CERTAINTY, SIZES
from tailsieve_rl.input_error import InputError

EXAMPLES = """examples:
  python -m tailsieve_rl.checkpoints qwen3_5-mtp --out outputs/qwen3_5 --acceptance 0.9
  python -m tailsieve_rl.checkpoints qwen3 --out outputs/qwen3
  python -m tailsieve_rl.checkpoints dflash --out outputs/dflash --target outputs/qwen3 --acceptance 0.9
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the model that the arguments ask for; the exit code is 2 for bad input."""
    options = _parser().parse_args(arguments)
    try:
        if options.kind == "dflash":
            write_dflash(options.out, options.target, options.acceptance, options.depth)
        else:
            write_model = write_qwen3 if options.kind == "qwen3" else write_qwen3_5_mtp
            write_model(
                options.out,
                acceptance=options.acceptance,
                size=SIZES[options.size],
                certainty=options.certainty,
                seed=options.seed,
            )
    except InputError as error:
        print(f"checkpoints: error: {error}", file=sys.stderr)
        return 2
    print(options.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tailsieve_rl.checkpoints",
        description="Write a small checkpoint whose drafts are accepted as often as you say.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    qwen3 = kinds.add_parser("qwen3", help="a Qwen3: a target, or with --acceptance below 1 a draft model")
    qwen3_5 = kinds.add_parser("qwen3_5-mtp", help="a Qwen3.5 with an MTP head")
    dflash = kinds.add_parser("dflash", help="a DFlash drafter for a Qwen3 written before")
    for kind in (qwen3, qwen3_5, dflash):
        kind.add_argument("--out", type=Path, required=True, help="folder to write")
        kind.add_argument(
            "--acceptance", type=float, default=1.0, help="share of the tokens after which it drafts right (default 1)"
        )
    for kind in (qwen3, qwen3_5):
        kind.add_argument("--size", choices=sorted(SIZES), default="tiny")
        kind.add_argument(
            "--certainty", type=float, default=CERTAINTY, help=f"probability of the likeliest token ({CERTAINTY})"
        )
        kind.add_argument("--seed", type=int, default=0, help="of the layers' weights")
    dflash.add_argument("--target", type=Path, required=True, help="folder of the Qwen3")
    dflash.add_argument("--depth", type=int, default=7, help="tokens drafted at once, at most (default 7)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
