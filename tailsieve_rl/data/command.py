"""`tailsieve data`: write a data set's prompts for verl."""

from pathlib import Path

from tailsieve_rl.data.catalogue import DataSet, named
from tailsieve_rl.data.lengths import load_tokenizer
from tailsieve_rl.data.prepared import MAX_PROMPT_TOKENS, read_split
from tailsieve_rl.data.sources import hub_rows, local_rows
from tailsieve_rl.input_error import InputError

DEFAULT_LIMIT = {"train": MAX_PROMPT_TOKENS, "test": None}


def file_name(data_set: str, split: str) -> str:
    """What the command calls a split's file."""
    return f"{data_set}_{split}.parquet"


def prepare(
    name: str,
    out: Path,
    file: Path | None = None,
    split: str | None = None,
    tokenizer: str | None = None,
    most_tokens: int | None = None,
) -> None:
    """Write OUT/NAME_SPLIT.parquet of every split that is asked for, and say what is in it; all of them or none.

    Args:
        name: of the data set.
        out: folder.
        file: a local copy of one split; None: the hub.
        split: one of the data set's; None: all, or of a file the only one.
        tokenizer: a model's folder or name; None: nothing is dropped for its length.
        most_tokens: longest prompt that is kept; None: the paper's limit for a training split, any for a test split,
            since a benchmark without its long problems is another one.

    Raises:
        InputError: for an unknown name or split, a file or hub that cannot be read, a malformed row.
    """
    data_set = named(name)
    splits = _splits(data_set, split, one_only=file is not None)
    if most_tokens is not None and most_tokens < 1:
        raise InputError(f"--max-prompt-tokens {most_tokens}: must be 1 or more")
    if most_tokens is not None and tokenizer is None:
        raise InputError(f"--max-prompt-tokens {most_tokens}: needs --tokenizer, which counts the tokens")
    counter = None if tokenizer is None else load_tokenizer(tokenizer)
    prepared = []
    for wanted in splits:
        source = data_set.hub if file is None else str(file)
        rows = hub_rows(data_set, wanted) if file is None else local_rows(file)
        prepared.append(read_split(data_set, wanted, source, rows, counter, most_tokens or DEFAULT_LIMIT[wanted]))
    for ready in prepared:
        path = out / file_name(name, ready.split)
        try:
            ready.write(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        print(path, *ready.report(), sep="\n  ")


def _splits(data_set: DataSet, split: str | None, one_only: bool) -> list[str]:
    known = list(data_set.splits)
    if split is not None and split not in known:
        raise InputError(f"--split {split}: {data_set.name} has {', '.join(known)}")
    if split is None and one_only and len(known) > 1:
        raise InputError(f"--file: say which split of {data_set.name} it is, --split {' or '.join(known)}")
    return known if split is None else [split]
