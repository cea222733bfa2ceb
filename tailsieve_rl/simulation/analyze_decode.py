"""`tailsieve analyze decode`: tau(b) as a run's own requests show it, at each draft depth, beside a decode profile."""

from collections.abc import Iterator
from typing import Any

from tailsieve_rl.routing.decode_estimate import Decoding, Estimate, estimate
from tailsieve_rl.routing.decode_model import MEASURED, DecodeModel, ProfileError, load_profile, save_profile
from tailsieve_rl.simulation.analyze import AnalyzeError

DEPTH = "draft_depth"
COLUMNS = ("step", "replica", "status", "response_tokens", "dispatch_s", "first_token_s", "end_s")


def decode(file: str, profile: str | None = None, out: str | None = None) -> None:
    """Print the estimate from a run's requests.parquet; beside a profile, and into one, if paths are given.

    Raises:
        AnalyzeError: if a file cannot be used.
    """
    try:
        given = None if profile is None else load_profile(profile)
    except ProfileError as error:
        raise AnalyzeError(str(error)) from None
    found = _estimates(file)
    print("\n\n".join(report(estimate, given) for estimate in found))
    if out is None:
        return
    points = tuple(point for estimate in found for point in estimate.model.points)
    notes = {"run": file, "residual": max(estimate.residual for estimate in found)}
    model = DecodeModel(points, model="of a run", kind=MEASURED, notes=notes)
    try:
        save_profile(model, out)
    except OSError as error:
        raise AnalyzeError(f"--out {out} cannot be written: {error.strerror}") from None
    print(out)


def report(found: Estimate, given: DecodeModel | None) -> str:
    """A line for each batch size that the run had."""
    depth = found.model.depths[0]
    drafting = f" at draft depth {depth}" if depth else ""
    lines = [f"{found.tokens} tokens{drafting}, residual {found.residual:.1%} a request", ""]
    if given is not None and depth not in given.depths:
        raise AnalyzeError(f"the run drafted {depth} tokens, the profile has draft depths {given.depths}")
    lines.append(f"{'b':>5}  {'tau, ms a token':>16}" + (f"  {'profile':>9}  {'ratio':>6}" if given else ""))
    for point in found.model.points:
        line = f"{point.b:>5}  {1e3 * point.tau_s:>16.2f}"
        if given is not None:
            tau_s = float(given.tau(point.b, depth))
            line += f"  {1e3 * tau_s:>9.2f}  {point.tau_s / tau_s:>6.2f}"
        lines.append(line)
    return "\n".join(lines)


def _estimates(file: str) -> list[Estimate]:
    """One for each draft depth that the run had; it counts tokens, not verifications: accepted drafts are in tau."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        drafting = [DEPTH] if DEPTH in pq.read_schema(file).names else []
        rows = pq.read_table(file, columns=[*COLUMNS, *drafting]).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise AnalyzeError(f"{file} is not a run's requests.parquet: {str(error).splitlines()[0]}") from None
    depths = sorted({row[DEPTH] for row in rows if row.get(DEPTH) is not None}) or [0]
    try:
        return [estimate(_steps([r for r in rows if r.get(DEPTH, 0) == depth]), depth) for depth in depths]
    except ValueError as error:
        raise AnalyzeError(f"{file}: {error}") from None


def _steps(rows: list[dict[str, Any]]) -> Iterator[list[Decoding]]:
    """The requests of each step; see routing.decode_estimate.decodings."""
    steps: dict[int, list[Decoding]] = {}
    for row in rows:
        first = row["first_token_s"]
        known = None if first is None else max(row["response_tokens"] - 1, 0)
        started = row["dispatch_s"] if first is None else first
        steps.setdefault(row["step"], []).append(Decoding(row["replica"], started, row["end_s"], known))
    yield from steps.values()
