"""`tailsieve analyze lengths`: Appendix B's measurements of a file, printed and written."""

import json
from dataclasses import asdict
from pathlib import Path

from tailsieve_rl.input_error import InputError
from tailsieve_rl.simulation.analysis import LEAST_PROMPTS, LengthAnalysis, Ranking, analyze_lengths
from tailsieve_rl.simulation.length_table import TraceError
from tailsieve_rl.simulation.rollout_dumps import read_measured


class AnalyzeError(InputError):
    """What was asked for cannot be done; one line for the user."""


def lengths(file: str, out: str | None = None, tokenizer: str | None = None) -> None:
    """Print the analysis of a file of lengths and, with a folder, write it to `<out>/results.json`.

    Raises:
        AnalyzeError: if the file cannot be used or the folder cannot be written.
    """
    try:
        table = read_measured(file, tokenizer)
    except TraceError as error:
        raise AnalyzeError(str(error)) from None
    analysis = analyze_lengths(table)
    print(report(analysis))
    if out is None:
        return
    path = Path(out) / "results.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"analysis": "lengths", "file": file, **asdict(analysis)}, indent=1) + "\n")
    except OSError as error:
        raise AnalyzeError(f"--out {out} cannot be written: {error.strerror}") from None
    print(path)


def report(analysis: LengthAnalysis) -> str:
    """The analysis in words and numbers, some ten lines."""
    a = analysis
    lines = [
        f"{a.rows} responses, {a.prompts} prompts, {a.checkpoints} checkpoint{'s' * (a.checkpoints != 1)}",
        f"tokens: mean {a.mean:.0f}, P50 {a.p50:.0f}, P90 {a.p90:.0f} ({a.p90 / a.p50:.2f} x P50), P99 {a.p99:.0f}, "
        f"longest {a.longest}",
        f"as long as the longest: {a.share_at_longest:.2%} (the truncated ones, if there was a cap)",
        "",
        "does a checkpoint's longest tenth of prompts rank highest at another? (AUC; 0.5 by chance)",
        f"  neighbouring checkpoints: {_range(a.adjacent)}",
        f"  the first and each later: {_range(a.first_to_later)}",
        "",
    ]
    if a.variance is None:
        return "\n".join([*lines, "variance: no prompt has a second response, so its sources cannot be told apart"])
    lines.append(f"variance of lengths by source ({a.variance.design})")
    lines.append(f"  {'':<16}{'sums of squares':>16}{'components':>12}")
    for name, squares in a.variance.sums_of_squares.items():
        lines.append(f"  {name:<16}{squares:>16.1%}{a.variance.components[name]:>12.1%}")
    return "\n".join(lines)


def _range(rankings: tuple[Ranking, ...]) -> str:
    if not rankings:
        return f"none (it takes two with {LEAST_PROMPTS} prompts in common)"
    found = [ranking.auc for ranking in rankings]
    if len(found) == 1:
        return f"{found[0]:.3f}"
    return f"{min(found):.3f} to {max(found):.3f}, mean {sum(found) / len(found):.3f}"
