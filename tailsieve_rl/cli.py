"""The command `tailsieve`. A sub-command imports what it needs when it runs, so that `--help` is instant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from tailsieve_rl import __version__


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tailsieve: error: {message} (see {self.prog} --help)\n")


def _train(arguments: Sequence[str]) -> int:
    from tailsieve_rl import train

    return train.main(arguments)


def _doctor(_: argparse.Namespace) -> int:
    from tailsieve_rl import doctor

    return doctor.run()


def _compare(options: argparse.Namespace) -> int:
    from tailsieve_rl.telemetry import compare

    try:
        return compare.main(options.runs)
    except compare.RunFilesError as error:
        print(f"tailsieve: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tailsieve",
        description="Partial-rollout-guided tail routing for synchronous LLM rollouts, on verl and vLLM.",
        epilog="example: tailsieve train --config-name cpu/countdown",
    )
    parser.add_argument("--version", action="version", version=f"tailsieve-rl {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")

    commands.add_parser("train", help="run a verl training job (a Hydra application)", add_help=False)

    doctor = commands.add_parser(
        "doctor",
        help="check this machine and installation",
        description="Check that this machine and installation can run a job, and say what is missing.",
        epilog="example: tailsieve doctor",
    )
    doctor.set_defaults(run=_doctor)

    compare = commands.add_parser(
        "compare",
        help="compare the results of runs in a table",
        description="Print one table, a column a run: generation time, reward, response lengths, routing.",
        epilog="example: tailsieve compare outputs/quickstart/verl_sync outputs/quickstart/tailsieve",
    )
    compare.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a run")
    compare.set_defaults(run=_compare)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 for bad input, 1 for a failed run."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["train"]:  # Hydra reads the rest: argparse would trip over its options
        return _train(arguments[1:])
    options = _parser().parse_args(arguments)
    code: int = options.run(options)
    return code
