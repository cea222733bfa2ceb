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


def _simulate(options: argparse.Namespace) -> int:
    from pathlib import Path

    from tailsieve_rl.simulation import command

    if options.list:
        print(command.describe())
        return 0
    try:
        if options.experiment is None or options.out is None:
            raise command.SimulateError("simulate needs the name of an experiment and --out DIR; --list shows them")
        for path in command.simulate(options.experiment, Path(options.out), options.seed, options.repeats):
            print(path)
    except command.SimulateError as error:
        print(f"tailsieve: error: {error}", file=sys.stderr)
        return 2
    return 0


def _analyze_lengths(options: argparse.Namespace) -> int:
    from tailsieve_rl.simulation import analyze

    try:
        analyze.lengths(options.file, options.out, options.tokenizer)
    except analyze.AnalyzeError as error:
        print(f"tailsieve: error: {error}", file=sys.stderr)
        return 2
    return 0


def _predict(options: argparse.Namespace) -> int:
    from tailsieve_rl.simulation import predict

    try:
        predict.run(
            options.file,
            options.profile,
            options.replicas,
            options.groups,
            options.responses,
            options.seed,
            predict.REPEATS if options.repeats is None else options.repeats,
            options.tokenizer,
            options.out,
        )
    except predict.PredictError as error:
        print(f"tailsieve: error: {error}", file=sys.stderr)
        return 2
    return 0


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

    simulate = commands.add_parser(
        "simulate",
        help="the paper's offline results in virtual time",
        description="Run an experiment in virtual time; write results.json and figures.",
        epilog="example: tailsieve simulate policies --out outputs/policies",
    )
    simulate.add_argument("experiment", nargs="?", metavar="NAME", help="an experiment; --list shows them")
    simulate.add_argument("--out", metavar="DIR", help="folder for the results")
    simulate.add_argument("--seed", type=int, default=0, help="of the first prompt stream (default 0)")
    simulate.add_argument("--repeats", type=int, help="prompt streams (default: what the experiment's claim needs)")
    simulate.add_argument("--list", action="store_true", help="describe the experiments")
    simulate.set_defaults(run=_simulate)

    predict = commands.add_parser(
        "predict",
        help="what TailSieve would gain on a job's response lengths, without running it",
        description="Replay a job's response lengths in virtual time under uniform routing, verl's own rule and "
        "TailSieve, and say whether TailSieve would pay.",
        epilog="example: tailsieve predict outputs/rollouts --tokenizer MODEL --profile qwen3-4b --replicas 8",
    )
    predict.add_argument("--profile", required=True, metavar="NAME|PATH", help="decode profile: a name, or a file")
    predict.add_argument("--replicas", required=True, type=int, metavar="R", help="rollout replicas")
    predict.add_argument("--groups", type=int, metavar="N", help="prompts of a step (default: as in the file)")
    predict.add_argument("--responses", type=int, metavar="n", help="responses of a prompt (default: as in the file)")
    predict.add_argument("--seed", type=int, default=0, help="of the first repeat (default 0)")
    predict.add_argument("--repeats", type=int, help="samples of the file's prompts, 2 or more (default 20)")
    _add_lengths_file(predict)
    predict.set_defaults(run=_predict)

    analyze = commands.add_parser(
        "analyze",
        help="what is in measured response lengths",
        description="Measure what a policy can count on in a file of response lengths.",
        epilog="example: tailsieve analyze lengths outputs/quickstart/tailsieve/requests.parquet",
    )
    subjects = analyze.add_subparsers(title="subjects", dest="subject", required=True, metavar="SUBJECT")
    lengths = subjects.add_parser(
        "lengths",
        help="quantiles, whether long prompts stay long, where the variance comes from",
        description="The paper's Appendix B: quantiles, whether long prompts stay long, where the variance comes from.",
        epilog="example: tailsieve analyze lengths lengths.csv --out outputs/lengths",
    )
    _add_lengths_file(lengths)
    lengths.set_defaults(run=_analyze_lengths)
    return parser


def _add_lengths_file(parser: argparse.ArgumentParser) -> None:
    """The options of a command that reads measured lengths."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="CSV with a row a response (columns prompt_id, response_tokens and, optionally, checkpoint), "
        "a run's requests.parquet, or verl's rollout dumps (the folder trainer.rollout_data_dir, or one .jsonl)",
    )
    parser.add_argument("--tokenizer", metavar="PATH", help="the model's folder: counts the tokens of rollout dumps")
    parser.add_argument("--out", metavar="DIR", help="folder for results.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 for bad input, 1 for a failed run."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["train"]:  # Hydra reads the rest: argparse would trip over its options
        return _train(arguments[1:])
    options = _parser().parse_args(arguments)
    code: int = options.run(options)
    return code
