"""Response lengths from verl's rollout dumps (trainer.rollout_data_dir): `<step>.jsonl`, a JSON object a line.

A dump holds text, so a tokenizer has to count it. The tokens are nearly those that were generated: a text may have been
generated in other pieces, and what an agent loop's tools answered counts as generated.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailsieve_rl.simulation.length_table import LengthTable, TraceError, read_lengths, run_table

PADDING = "pad"
"""How the uid of a line begins that verl added to make a batch divisible; others begin with a hexadecimal digit."""

END = 1
"""Tokens at the end of an output that the dump leaves out."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One output of one response.

    Attributes:
        group, session: of its response; lines that have both in common are outputs of the same one.
        prompt, output: texts.
        step: that consumed it.
    """

    group: str
    session: str
    prompt: str
    output: str
    step: int


def read_measured(path: str | Path, tokenizer: str | None = None) -> LengthTable:
    """Read whatever a job has left: rollout dumps (a folder, or one .jsonl), or a file that `read_lengths` knows.

    Raises:
        TraceError: as `read_lengths` and `read_dumps`.
    """
    if Path(path).is_dir() or Path(path).suffix == ".jsonl":
        return read_dumps(path, tokenizer)
    return read_lengths(path)


def read_dumps(path: str | Path, tokenizer: str | None) -> LengthTable:
    """Read rollout dumps. A prompt is known by its text; outputs of one response add up.

    Args:
        path: a folder of `<step>.jsonl`, or one such file.
        tokenizer: a Hugging Face folder.

    Raises:
        TraceError: if there is no dump or no tokenizer, or a line is not as verl writes it.
    """
    files = _files(Path(path))
    if tokenizer is None:
        raise TraceError(f"{path}: rollout dumps hold text only; --tokenizer PATH must name the model's folder")
    count = _counter(tokenizer)
    prompts: dict[tuple[int, str], str] = {}
    tokens: dict[tuple[int, str, str], int] = {}
    for file in files:
        lines = _lines(file)
        for line, length in zip(lines, count([line.output for line in lines]), strict=True):
            prompts.setdefault((line.step, line.group), line.prompt)
            response = (line.step, line.group, line.session)
            tokens[response] = tokens.get(response, 0) + length + END
    if not tokens:
        raise TraceError(f"{path} has no responses")
    texts = [prompts[step, group] for step, group, _ in tokens]
    return run_table(texts, [step for step, *_ in tokens], list(tokens.values()), str(path))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise TraceError(f"{path} is neither a file nor a folder")
    if path.is_file():
        return [path]
    found = sorted((file for file in path.glob("*.jsonl") if file.stem.isdigit()), key=lambda file: int(file.stem))
    if not found:
        raise TraceError(f"{path} has no <step>.jsonl files, as verl writes them with trainer.rollout_data_dir")
    return found


def _counter(tokenizer: str) -> Callable[[Sequence[str]], list[int]]:
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise TraceError(f"--tokenizer {tokenizer} must be a folder with a Hugging Face tokenizer: {first}") from error

    def count(texts: Sequence[str]) -> list[int]:
        encoded = loaded(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
        return [len(ids) for ids in encoded]

    return count


def _lines(file: Path) -> list[_Line]:
    try:
        rows = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{file} cannot be read: {error}") from error
    parsed = [_line(row, f"{file}, line {number}") for number, row in enumerate(rows, 1) if row.strip()]
    return [line for line in parsed if not line.group.startswith(PADDING)]


def _line(row: str, where: str) -> _Line:
    try:
        entry = json.loads(row)
    except json.JSONDecodeError as error:
        raise TraceError(f"{where} is not JSON: {error.msg}") from error
    if not isinstance(entry, dict):
        raise TraceError(f"{where}: must be an object with the keys input, output and step, not {entry!r:.60}")
    prompt, output = _value(entry, "input", str, where), _value(entry, "output", str, where)
    key = str(entry.get("uid", "")).rsplit("_", 2)
    group, session = (key[0], key[1]) if len(key) == 3 else (prompt, where)
    return _Line(group, session, prompt, output, _value(entry, "step", int, where))


def _value(entry: dict[str, Any], key: str, kind: type, where: str) -> Any:
    value = entry.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = "text" if kind is str else "a whole number"
        raise TraceError(f"{where}: {key} = {value!r:.60} must be {words}, as in verl's dumps")
    return value
