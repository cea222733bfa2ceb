"""From a row of a data set to a problem: chat messages and the truth that a response is judged by."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailsieve_rl.data.templates import Messages, code_messages, math_messages

Row = Mapping[str, Any]

QUESTION = ("problem", "question", "prompt")
"""Columns that hold a question, in the order in which they are looked for: published copies differ in the name."""
INSTRUCTION = "\nPlease reason step by step, and put your final answer within \\boxed{}."
"""Some copies of the AIME sets have it behind every question; the template says as much, so it is taken off."""
AIME_LARGEST = 999

_GSM8K_TRUTH = re.compile(r"####\s*(-?[\d,]*\.?\d+)\s*$")


class RowError(ValueError):
    """A row that is no problem of its data set."""


class Unanswered(RowError):
    """A row without an answer."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked, and what is right: LaTeX without `\\boxed` for mathematics, the tests for code."""

    messages: Messages
    truth: str


def read_math(row: Row) -> Problem:
    """A question and its answer."""
    return Problem(math_messages(_question(row)), _answer(row))


def read_aime(row: Row) -> Problem:
    """A question and its answer, an integer from 0 to 999."""
    question, answer = _question(row), _answer(row)
    if not answer.isdecimal() or int(answer) > AIME_LARGEST:
        raise RowError(f"answer={answer!r}: must be an integer from 0 to {AIME_LARGEST}")
    return Problem(math_messages(question), str(int(answer)))


def read_gsm8k(row: Row) -> Problem:
    """A question and a worked answer, whose last line `#### n` has the truth."""
    question, answer = _question(row), _answer(row)
    match = _GSM8K_TRUTH.search(answer)
    if match is None:
        raise RowError("the answer does not end in '#### NUMBER'")
    return Problem(math_messages(question), match.group(1).replace(",", ""))


def read_kodcode(row: Row) -> Problem:
    """A question, the first function that its tests call (the paper asks for one), and the tests.

    A specification may be missing: the function's docstring is empty then.
    """
    info = row.get("test_info")
    if isinstance(info, str):
        try:
            info = json.loads(info)
        except ValueError:
            raise RowError("test_info is no JSON") from None
    function = info[0] if isinstance(info, list) and info else info
    if not isinstance(function, Mapping):
        raise RowError("test_info must hold a function with function_declaration and docstring")
    declaration = _text(function, "test_info.function_declaration")
    docstring = str(function.get("docstring") or "").strip()
    return Problem(code_messages(_text(row, "question"), declaration, docstring), _text(row, "test"))


def _question(row: Row) -> str:
    column = next((name for name in QUESTION if name in row), None)
    if column is None:
        raise RowError(f"needs a column {' or '.join(QUESTION)}, has {', '.join(row) or 'none'}")
    question = _text(row, column).removesuffix(INSTRUCTION).rstrip()
    if not question:
        raise RowError(f"{column} is empty")
    return question


def _answer(row: Row) -> str:
    if "answer" not in row:
        raise RowError(f"needs a column answer, has {', '.join(row) or 'none'}")
    answer = row["answer"]
    if isinstance(answer, float) and answer.is_integer():  # what other tools make of integers beside a missing value
        answer = int(answer)
    if answer is None or answer != answer or not str(answer).strip():
        raise Unanswered("the answer is empty")
    if not isinstance(answer, str | int | float) or isinstance(answer, bool):
        raise RowError(f"answer must be a text or a number, not {type(answer).__name__}")
    return str(answer).strip()


def _text(row: Row, path: str) -> str:
    """A text that is there and not empty; the last part of the path is the column."""
    column = path.rpartition(".")[2]
    if column not in row:
        raise RowError(f"needs a column {path}, has {', '.join(row) or 'none'}")
    if not isinstance(row[column], str) or not row[column].strip():
        raise RowError(f"{path} is empty or no text")
    return str(row[column]).strip()
