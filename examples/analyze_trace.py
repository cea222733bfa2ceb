"""Analyze a length trace: how long is its tail, and is it the prompts that are long?

python examples/analyze_trace.py [FILE]

FILE is a CSV with the columns prompt_id and response_tokens, or a run's requests.parquet. Without one: a trace of 30
AIME problems at 11 checkpoints of a fine-tuning run, which comes with the package. Whether routing would pay on it says
`tailsieve predict FILE`.
"""

import sys

import numpy as np

from tailsieve_rl.simulation.analysis import analyze_lengths
from tailsieve_rl.simulation.analyze import report
from tailsieve_rl.simulation.length_table import read_lengths
from tailsieve_rl.simulation.workloads.traces import SKY_T1


def main(file: str = str(SKY_T1)) -> None:
    """Print Appendix B's measurements (`tailsieve analyze lengths`), and two more."""
    table = read_lengths(file)
    print(report(analyze_lengths(table)), end="\n\n")

    work = np.sort(np.bincount(table.prompt, table.tokens))[::-1]  # tokens of each prompt, at all checkpoints
    tenth = -(-len(work) // 10)
    print(f"the longest tenth of the prompts has {work[:tenth].sum() / work.sum():.0%} of the tokens")

    # What a synchronous step waits for is its longest response. Against the mean it says how much waiting there is.
    rng = np.random.default_rng(0)
    steps = rng.choice(table.tokens, (1000, 64 * 8))
    print(f"a step of 512 such responses waits for one of {steps.max(1).mean() / steps.mean():.1f} x their mean length")


if __name__ == "__main__":
    main(*sys.argv[1:])
