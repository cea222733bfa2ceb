"""The data sets, one line each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailsieve_rl.data.problems import Problem, Row, read_aime, read_gsm8k, read_kodcode, read_math
from tailsieve_rl.input_error import InputError


@dataclass(frozen=True, slots=True)
class DataSet:
    """Where a data set is, and how its rows are read.

    Attributes:
        name: what the command calls it.
        hub: its repository on the Hugging Face hub.
        splits: split -> what the hub calls it.
        read: a row to a problem; raises RowError.
        config: its configuration on the hub.
        ability: verl's column; also names the template.
        has_unanswered: it is known to have rows without an answer, which are left out and counted.
    """

    name: str
    hub: str
    splits: Mapping[str, str]
    read: Callable[[Row], Problem]
    config: str | None = None
    ability: str = "math"
    has_unanswered: bool = False

    @property
    def data_source(self) -> str:
        """verl's column. Not the hub's name: verl has rules of its own for those, which would look for other marks."""
        return f"tailsieve/{self.name}"


CATALOGUE: Mapping[str, DataSet] = {
    data_set.name: data_set
    for data_set in (
        DataSet(
            "deepscaler", "agentica-org/DeepScaleR-Preview-Dataset", {"train": "train"}, read_math, has_unanswered=True
        ),
        DataSet("kodcode", "KodCode/KodCode-Light-RL-10K", {"train": "train"}, read_kodcode, ability="code"),
        DataSet("gsm8k", "openai/gsm8k", {"train": "train", "test": "test"}, read_gsm8k, config="main"),
        DataSet("math500", "HuggingFaceH4/MATH-500", {"test": "test"}, read_math),
        DataSet("aime24", "HuggingFaceH4/aime_2024", {"test": "train"}, read_aime),
        DataSet("aime25", "math-ai/aime25", {"test": "test"}, read_aime),
    )
}


def named(name: str) -> DataSet:
    """The data set of that name.

    Raises:
        InputError: if there is none.
    """
    if name not in CATALOGUE:
        raise InputError(f"data set {name!r}: must be one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
