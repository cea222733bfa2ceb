"""`tailsieve simulate`, as a user calls it."""

import json
from pathlib import Path

import pytest

from tailsieve_rl.cli import main
from tailsieve_rl.simulation.experiments import EXPERIMENTS, Options, experiment


def test_an_experiment_writes_its_results_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "throughput", "--out", str(tmp_path / "a" / "b"), "--seed", "3"]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in written] == ["results.json", "throughput.png"]
    results = json.loads(written[0].read_text())
    assert (results["experiment"], results["backend"], results["seed"]) == ("throughput", "simulated", 3)
    assert written[1].read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_results_and_another_one_does_not() -> None:
    one, same, other = (experiment("throughput").run(Options(seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_the_list_describes_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert all(len(line.split(maxsplit=1)[1]) > 20 for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense", "--out", "{tmp}"], "there is no experiment 'nonsense'; there are throughput, oracle"),
        (["throughput"], "needs the name of an experiment and --out DIR"),
        (["--out", "{tmp}"], "needs the name of an experiment and --out DIR"),
        (["throughput", "--out", "{tmp}/file/below"], "file/below cannot be written"),
        (["throughput", "--out", "{tmp}", "--seed", "-1"], "--seed -1 must be 0 or more"),
        (["throughput", "--out", "{tmp}", "--repeats", "0"], "--repeats 0 must be 1 or more"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["simulate", *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and captured.err.startswith("tailsieve: error: ")
    assert message in captured.err and not captured.out
