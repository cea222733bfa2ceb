"""The benchmarks of the paper's Table 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailsieve_rl.input_error import InputError


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One column of the table.

    Attributes:
        title: as the paper has it.
        k: of pass@k.
    """

    title: str
    k: int

    @property
    def heading(self) -> str:
        return f"{self.title} pass@{self.k}"


BENCHMARKS: Mapping[str, Benchmark] = {
    "gsm8k": Benchmark("GSM8K", 1),
    "math500": Benchmark("MATH-500", 1),
    "aime24": Benchmark("AIME24", 10),
    "aime25": Benchmark("AIME25", 10),
}
"""By the name of the data set."""

SPLIT = "test"


def samples_of(sets: Sequence[str], samples: int | None) -> dict[str, int]:
    """Responses a problem of each set: as given, or k. (The paper's accuracies are all multiples of one problem, as
    with n = k.)

    Raises:
        InputError: for an unknown set, one that is named twice, or fewer samples than k.
    """
    unknown = [name for name in sets if name not in BENCHMARKS]
    if unknown or not sets or len(set(sets)) < len(sets):
        raise InputError(f"--sets {','.join(sets)}: must be of {','.join(BENCHMARKS)}, each at most once")
    most = max(sets, key=lambda name: BENCHMARKS[name].k)
    if samples is not None and samples < BENCHMARKS[most].k:
        raise InputError(f"--samples {samples}: {BENCHMARKS[most].heading} needs {BENCHMARKS[most].k} or more")
    return {name: samples or BENCHMARKS[name].k for name in sets}
