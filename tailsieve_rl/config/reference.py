"""The configuration reference, written from the settings classes: `python -m tailsieve_rl.config.reference`.

A class's docstring says what its settings mean: its first paragraph what the block is for, its section `Attributes`
what each key does. Types and defaults are those of its fields.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from tailsieve_rl.algorithms.settings import AlgorithmSettings
from tailsieve_rl.benchmark import settings as bench
from tailsieve_rl.config import evaluation, rollout_only, settings
from tailsieve_rl.engines.emulated import settings as emulated


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the configuration.

    Attributes:
        key: where it stands.
        settings: the class that it is read into.
        read_by: who reads it.
    """

    key: str
    settings: type
    read_by: str


BLOCKS = (
    Block(settings.BLOCK, settings.Settings, "trainer mode `tailsieve`"),
    Block(emulated.BLOCK, emulated.EmulatedSettings, "emulated engines, `actor_rollout_ref.rollout.name=emulated`"),
    Block(bench.BLOCK, bench.BenchSettings, "`tailsieve bench`"),
    Block(rollout_only.BLOCK, rollout_only.RolloutOnlySettings, "`tailsieve bench`, trainer mode `tailsieve_rollout`"),
    Block(evaluation.BLOCK, evaluation.EvaluationSettings, "`tailsieve evaluate`, trainer mode `tailsieve_evaluation`"),
    Block("algorithm", AlgorithmSettings, "trainer mode `tailsieve`, and verl, whose the defaults are"),
)
"""Every block, in the page's order; a new settings class is a line here."""

_HEAD = """\
# Configuration reference

Written by `python -m tailsieve_rl.config.reference > docs/configuration.md` from the settings classes; a test compares
the two.

No key has to be given. On a command line a key is written with its whole path, `++KEY=VALUE`:
`++trainer.v1.tailsieve.controller.name=hierarchical`. In a recipe (YAML) it stands in its block. A key that does not
exist, a wrong type or a value out of range is refused before Ray starts, in one line that names the key, the value and
what would be right. [tuning_and_troubleshooting.md](tuning_and_troubleshooting.md) says which setting mends what.
verl's own keys are in verl's documentation; what the mode needs of them is checked at the start as well.
"""

_TYPES = {int: "integer", float: "number", str: "string", bool: "true, false"}


def reference() -> str:
    """The whole page.

    Raises:
        ValueError: if a class does not say what one of its settings means.
    """
    parts = [part for block in BLOCKS for part in _sections(block.key, block.settings, block.read_by)]
    return "\n".join([_HEAD, *parts])


def _sections(key: str, cls: type, read_by: str = "") -> Iterator[str]:
    """A block's own settings, then the blocks in it; blocks of one class are described together."""
    about, meanings = described(cls)
    hints = get_type_hints(cls)
    plain = [f for f in fields(cls) if not is_dataclass(hints[f.name])]
    nested: dict[type, list[str]] = {}
    for f in fields(cls):
        if is_dataclass(hints[f.name]):
            nested.setdefault(hints[f.name], []).append(f"{key}.{f.name}")
    title = ", ".join(f"`{path}`" for path in key.split(" "))
    yield f"{'##' if read_by else '###'} {title}\n"
    yield f"Read by {read_by}. {about}\n" if read_by else f"{about}\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for f in plain:
        if not meanings.get(f.name):
            raise ValueError(f"{cls.__name__}.{f.name}: its class's docstring does not say what it means")
        yield f"| `{f.name}` | {_type(hints[f.name])} | {_default(f)} | {_cell(meanings[f.name])} |"
    yield ""
    for inner, keys in nested.items():
        yield from _sections(" ".join(keys), inner)


def described(cls: type) -> tuple[str, dict[str, str]]:
    """A class's first paragraph, and what its docstring's section `Attributes` says of each attribute."""
    about, *sections = inspect.cleandoc(cls.__doc__ or "").split("\n\n")
    meanings: dict[str, str] = {}
    for section in sections:
        if section.startswith("Attributes:\n"):
            items = re.split(r"^ {4}(\w+): ", section, flags=re.MULTILINE)[1:]
            meanings |= {name: " ".join(text.split()) for name, text in zip(items[::2], items[1::2], strict=True)}
    return " ".join(about.split()), meanings


def _type(hint: Any) -> str:
    hint = next(
        (option for option in get_args(hint) if type(None) in get_args(hint) and option is not type(None)), hint
    )
    return "list of strings" if get_origin(hint) is tuple else _TYPES[hint]


def _default(f: "Field[Any]") -> str:
    value = f.default
    if value is MISSING:
        return "verl's"
    if isinstance(value, tuple):
        return f"`[{','.join(value)}]`"
    named = {None: "null", True: "true", False: "false"}
    return f"`{named[value] if value is None or isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    """For a column of a table; nothing is `null` to those who write YAML."""
    return re.sub(r"\bNone\b", "`null`", text).replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
