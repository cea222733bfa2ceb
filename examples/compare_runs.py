"""Compare two runs step by step, from their result files: where did the time go?

python examples/simulate_policy.py
python examples/compare_runs.py outputs/examples/uniform outputs/examples/tailsieve
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def steps_of(folder: Path) -> dict[int, dict[str, float]]:
    """What each step of a run did: steps.jsonl, and four more figures from requests.parquet."""
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    requests = pq.read_table(folder / "requests.parquet").to_pylist()
    replicas = {row["replica"] for row in requests}
    for line in lines:
        rows = [row for row in requests if row["step"] == line["step"]]
        consumed = [row for row in rows if row["status"] == "consumed"]
        gen_s, last = line["gen_time_s"], max(consumed, key=lambda row: row["end_s"])
        busy = {name: max((row["end_s"] for row in rows if row["replica"] == name), default=0.0) for name in replicas}
        line["idle"] = 1 - np.mean([min(end, gen_s) for end in busy.values()]) / gen_s
        line["last_tenth"] = 1 - np.quantile([row["end_s"] for row in consumed], 0.9) / gen_s
        line["last_tokens"], line["last_ms"] = last["response_tokens"], 1e3 * gen_s / last["response_tokens"]
    return {line["step"]: line for line in lines}


FIGURES = {
    "gen_time_s": "generation time a step, s",
    "last_tenth": "share of it for the last tenth of the responses",
    "idle": "share of it that the mean replica has nothing to do",
    "last_tokens": "tokens of the response that finished last",
    "last_ms": "milliseconds that each of them took",
    "wasted_fraction": "share of the tokens thrown away",
}


def main(first: str, second: str) -> None:
    """Print the medians of both over the steps that both have, and the median ratio of their generation times."""
    runs = [steps_of(Path(folder)) for folder in (first, second)]
    both = sorted(set(runs[0]) & set(runs[1]))
    print(f"{'median of ' + str(len(both)) + ' steps':<54}{Path(first).name:>14}{Path(second).name:>14}")
    for key, meaning in FIGURES.items():
        medians = [np.median([run[step].get(key, 0.0) for step in both]) for run in runs]
        print(f"{meaning:<54}" + "".join(f"{value:>14.3g}" if value < 1000 else f"{value:>14.0f}" for value in medians))
    ratios = [runs[0][step]["gen_time_s"] / runs[1][step]["gen_time_s"] for step in both]
    print(f"{Path(second).name} is {np.median(ratios):.3f}x as fast, step by step")


if __name__ == "__main__":
    main(*sys.argv[1:])
