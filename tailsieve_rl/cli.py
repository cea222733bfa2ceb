"""The command `tailsieve`. A sub-command imports what it needs when it runs, so that `--help` is instant."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tailsieve_rl import __version__
from tailsieve_rl.input_error import InputError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tailsieve: error: {message} (see {self.prog} --help)\n")


def _train(arguments: Sequence[str]) -> int:
    from tailsieve_rl import train

    return train.main(arguments)


def _bench(arguments: Sequence[str]) -> int:
    from tailsieve_rl.benchmark import command

    return command.main(arguments)


def _doctor(_: argparse.Namespace) -> int:
    from tailsieve_rl import doctor

    return doctor.run()


def _compare(options: argparse.Namespace) -> int:
    from tailsieve_rl.telemetry.compare import compare

    compare(options.runs)
    return 0


def _report(options: argparse.Namespace) -> int:
    from tailsieve_rl.telemetry.report import report

    print(*report(options.runs, options.out, options.trace, options.tensorboard, options.steps), sep="\n")
    return 0


def _dashboard(options: argparse.Namespace) -> int:
    from tailsieve_rl.telemetry.dashboard import dashboard

    print(*dashboard(options.project, options.entity, options.report, options.dry_run), sep="\n")
    return 0


def _simulate(options: argparse.Namespace) -> int:
    from pathlib import Path

    from tailsieve_rl.simulation import command

    if options.list:
        print(command.describe())
        return 0
    if options.experiment is None or options.out is None:
        raise command.SimulateError("simulate needs the name of an experiment and --out DIR; --list shows them")
    for path in command.simulate(options.experiment, Path(options.out), options.seed, options.repeats):
        print(path)
    return 0


def _analyze_lengths(options: argparse.Namespace) -> int:
    from tailsieve_rl.simulation import analyze

    analyze.lengths(options.file, options.out, options.tokenizer)
    return 0


def _analyze_decode(options: argparse.Namespace) -> int:
    from tailsieve_rl.simulation import analyze_decode

    analyze_decode.decode(options.file, options.profile, options.out)
    return 0


def _predict(options: argparse.Namespace) -> int:
    from tailsieve_rl.simulation import predict

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
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    from tailsieve_rl.calibration import command
    from tailsieve_rl.calibration.client import EngineError

    try:
        command.calibrate(command.settings_of(options), options.command_line)
    except EngineError as error:
        *log, line = str(error).splitlines()
        print(*log, f"tailsieve: error: {line}", sep="\n", file=sys.stderr)
        return 1
    print(options.out)
    return 0


def _data(options: argparse.Namespace) -> int:
    from pathlib import Path

    from tailsieve_rl.data import command

    file = None if options.file is None else Path(options.file)
    command.prepare(options.name, Path(options.out), file, options.split, options.tokenizer, options.max_prompt_tokens)
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from pathlib import Path

    from tailsieve_rl.evaluation import command
    from tailsieve_rl.evaluation.job import Sampling

    given = command.Options(
        models=options.models,
        base=options.base,
        sets=options.sets.split(","),
        samples=options.samples,
        data=None if options.data is None else Path(options.data),
        out=Path(options.out),
        sampling=Sampling(options.max_tokens, options.seed, options.requests),
        overrides=options.engine_arguments,
        command_line=options.command_line,
    )
    command.evaluate(given)
    return 0


HYDRA = {"train": _train, "bench": _bench}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tailsieve",
        description="Partial-rollout-guided tail routing for synchronous LLM rollouts, on verl and vLLM.",
        epilog="example: tailsieve train --config-name cpu/countdown",
    )
    parser.add_argument("--version", action="version", version=f"tailsieve-rl {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", required=True, metavar="COMMAND")

    commands.add_parser("train", help="run a verl training job (a Hydra application)", add_help=False)
    commands.add_parser("bench", help="compare routing policies step by step (a Hydra application)", add_help=False)

    _add_data(commands)
    _add_evaluate(commands)

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

    report = commands.add_parser(
        "report",
        help="show runs on a page: step times, a timeline of every request, allocation, lengths",
        description="Write what a run did as a page that needs no network, as a Chrome trace (Perfetto, "
        "chrome://tracing), or for TensorBoard. Several runs are set against the first one.",
        epilog="example: tailsieve report outputs/quickstart/verl_sync outputs/quickstart/tailsieve "
        "--out outputs/quickstart/report.html",
    )
    report.add_argument("runs", nargs="+", metavar="RUN", help="output folder of a run")
    report.add_argument("--out", metavar="FILE", help="the page (HTML)")
    report.add_argument("--trace", metavar="FILE", help="the timelines as a trace (JSON)")
    report.add_argument("--tensorboard", metavar="DIR", help="the steps' metrics, and a layout for them")
    report.add_argument("--steps", metavar="A-B", help="steps of the timelines (default: as many as a page holds)")
    report.set_defaults(run=_report)

    dashboard = commands.add_parser(
        "dashboard",
        help="create or update a wandb workspace for step time, allocation and quality",
        description="Create or update a saved workspace in a wandb project, and a report that compares two runs.",
        epilog="example: tailsieve dashboard --project tailsieve-rl --report baseline tailsieve --dry-run",
    )
    dashboard.add_argument("--project", required=True, metavar="P", help="wandb project")
    dashboard.add_argument("--entity", metavar="E", help="its user or team (default: that of the login)")
    dashboard.add_argument("--report", nargs=2, metavar=("RUN_A", "RUN_B"), help="compare B with A: names or ids")
    dashboard.add_argument("--dry-run", action="store_true", help="print what would be created; needs no login")
    dashboard.set_defaults(run=_dashboard)

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

    _add_calibrate(commands)

    analyze = commands.add_parser(
        "analyze",
        help="what is in a run's response lengths and times",
        description="Measure what a policy can count on.",
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
    decode = subjects.add_parser(
        "decode",
        help="seconds per token by batch size, as a run's requests show it",
        description="Estimate tau(b) from a run, as the controllers do, and set it beside a decode profile.",
        epilog="example: tailsieve analyze decode outputs/quickstart/tailsieve/requests.parquet",
    )
    decode.add_argument("file", metavar="FILE", help="a run's requests.parquet")
    decode.add_argument("--profile", metavar="PATH", help="compare with this profile")
    decode.add_argument("--out", metavar="PATH", help="write the estimate as a profile")
    decode.set_defaults(run=_analyze_decode)
    return parser


def _add_data(commands: Any) -> None:
    data = commands.add_parser(
        "data",
        help="the paper's data sets as prompts in verl's format",
        description="Write a data set's prompts in verl's format, with the paper's templates (Appendix A.1), from the "
        "Hugging Face hub or from a local file, as DIR/NAME_SPLIT.parquet.",
        epilog="example: tailsieve data gsm8k --out outputs/data --tokenizer Qwen/Qwen3.5-2B",
    )
    data.add_argument("name", metavar="NAME", help="deepscaler, kodcode, gsm8k, math500, aime24 or aime25")
    data.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    data.add_argument("--file", metavar="FILE", help="a local .jsonl, .json, .parquet or .csv instead of the hub")
    data.add_argument("--split", metavar="SPLIT", help="train or test (default: all that the data set has)")
    data.add_argument(
        "--tokenizer", metavar="MODEL", help="a folder or hub name: counts tokens; prompts too long are dropped"
    )
    data.add_argument(
        "--max-prompt-tokens",
        type=int,
        metavar="N",
        help="longest prompt that is kept (default: 512 in a train split, as in the paper; any in a test split)",
    )
    data.set_defaults(run=_data)


def _add_evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="accuracies on GSM8K, MATH-500 and AIME, as in the paper's Table 3",
        description="Answer mathematical benchmarks with vLLM, through the tail and bulk pools; print pass@1 and "
        "pass@10 in the form of the paper's Table 3, and write results.json.",
        epilog="example: tailsieve evaluate outputs/run/global_step_30 --base Qwen/Qwen3.5-2B --data outputs/data",
        usage="%(prog)s MODEL [MODEL ...] [options] [-- KEY=VALUE of verl's configuration ...]",
    )
    evaluate.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="a model's folder, a checkpoint of verl's (global_step_N), OWNER/NAME on the hub, or earlier results",
    )
    evaluate.add_argument("--base", metavar="MODEL", help="the base model, or its results: changes are relative to it")
    evaluate.add_argument(
        "--sets", default="gsm8k,math500,aime24,aime25", metavar="SET,...", help="benchmarks (default %(default)s)"
    )
    evaluate.add_argument("--data", metavar="DIR", help="files that tailsieve data wrote (default: from the hub)")
    evaluate.add_argument("--samples", type=int, metavar="N", help="responses a problem (default: k of pass@k)")
    evaluate.add_argument("--max-tokens", type=int, default=16384, metavar="N", help="a response (default %(default)s)")
    evaluate.add_argument("--seed", type=int, default=42, help="of the responses (default %(default)s)")
    evaluate.add_argument(
        "--requests", type=int, default=512, metavar="N", help="most responses of a round (default %(default)s)"
    )
    evaluate.add_argument(
        "--out", default="outputs/evaluation", metavar="DIR", help="a folder a model in it (default %(default)s)"
    )
    evaluate.set_defaults(run=_evaluate)


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


def _add_calibrate(commands: Any) -> None:
    calibrate = commands.add_parser(
        "calibrate",
        help="measure seconds per token by batch size on a real engine",
        description="Measure how long a token takes when b requests decode together, on an engine that is started for "
        "it or on one that runs and is idle; write a decode profile.",
        epilog="example: tailsieve calibrate --model outputs/demo/model --out outputs/profile.json -- --dtype float32",
        usage="%(prog)s --model PATH --out FILE [options] [-- arguments of vllm serve]",
    )
    calibrate.add_argument("--model", required=True, metavar="PATH", help="its folder; with --url, its name there")
    calibrate.add_argument("--out", required=True, metavar="FILE", help="the profile to write (JSON)")
    calibrate.add_argument(
        "--url", metavar="URL", help="measure this engine, http://host:port, instead of one to start"
    )
    calibrate.add_argument(
        "--batch-sizes",
        default="1,2,4,8,16,32,64,128",
        metavar="B,B,...",
        help="requests at once (default %(default)s)",
    )
    calibrate.add_argument("--tokens", type=int, default=256, metavar="N", help="a response (default %(default)s)")
    calibrate.add_argument("--repeats", type=int, default=3, metavar="N", help="for each b (default %(default)s)")
    calibrate.add_argument(
        "--prompt-tokens", type=int, default=16, metavar="N", help="of random prompts (default %(default)s)"
    )
    calibrate.add_argument(
        "--prompts", metavar="FILE", help="real prompts: .jsonl (text or token ids), or lines of text"
    )
    calibrate.add_argument("--speculative", metavar="JSON", help="vLLM's speculative configuration, without its depth")
    calibrate.add_argument(
        "--draft-depths", default="0", metavar="D,D,...", help="tokens drafted at once (default 0: none)"
    )
    calibrate.set_defaults(run=_calibrate)


def _parse(arguments: list[str]) -> argparse.Namespace:
    """The options; what comes after "--" is for another program, and argparse must not see it."""
    given, after = arguments, []
    if arguments[:1] in (["calibrate"], ["evaluate"]) and "--" in arguments:
        at = arguments.index("--")
        given, after = arguments[:at], arguments[at + 1 :]
    options = _parser().parse_args(given)
    options.engine_arguments = after
    options.command_line = shlex.join(["tailsieve", *arguments])
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 2 for bad input, 1 for a failed run, 130 if interrupted."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and arguments[0] in HYDRA:  # Hydra reads the rest: argparse would trip over its options
        return HYDRA[arguments[0]](arguments[1:])
    options = _parse(arguments)
    try:
        code: int = options.run(options)
    except InputError as error:
        print(f"tailsieve: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("tailsieve: error: interrupted", file=sys.stderr)
        return 130
    return code
