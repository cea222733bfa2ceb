"""tau(b): how long a token takes when b requests decode at once on a replica (paper 2.1).

A DecodeModel comes from a profile file (design.md, section 8) or from observation (decode_estimate); the makespans of
routing.makespan are computed from its table.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailsieve_rl.routing.draft import Acceptance, Depth, depth_at

Floats = NDArray[np.float64]

MEASURED, MODELLED = "measured", "modelled"


class ProfileError(ValueError):
    """A decode profile that cannot be used; the message names the file and the value."""


@dataclass(frozen=True, slots=True)
class DecodePoint:
    """One measurement of a replica.

    Attributes:
        b: requests that decode at once.
        tau_s: seconds per token of each of them; accepted draft tokens count as tokens.
        draft_depth: tokens that were drafted at once; 0 without speculation.
    """

    b: int
    tau_s: float
    draft_depth: int = 0


@dataclass(frozen=True, slots=True)
class DecodeModel:
    """tau(b) for each draft depth, linear between its points.

    Beyond the last point of a depth tau goes on straight, with its mean slope over the last doubling of b (never
    downwards; a single point stays constant): throughput b / tau(b) then levels off instead of growing for ever.

    Attributes:
        points: at least (b = 1, tau > 0) for each depth; no b twice for a depth.
        model, device, engine: what was profiled.
        kind: "measured" on an engine, or "modelled" from the specifications of a device.
        notes: further keys of the profile, such as how it was made.
    """

    points: tuple[DecodePoint, ...]
    model: str = ""
    device: str = ""
    engine: str = ""
    kind: str = MEASURED
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[tuple[int, int]] = set()
        for point in self.points:
            if point.b < 1 or point.draft_depth < 0:
                raise ProfileError(f"{_name(point)}: b must be 1 or more, and draft_depth 0 or more")
            if not (isfinite(point.tau_s) and point.tau_s > 0):
                raise ProfileError(f"{_name(point)}: tau_s = {point.tau_s} must be a positive number of seconds")
            if (point.b, point.draft_depth) in seen:
                raise ProfileError(f"{_name(point)} is given twice")
            seen.add((point.b, point.draft_depth))
        for depth in self.depths or (0,):
            if (1, depth) not in seen:
                raise ProfileError(f"the points of draft_depth = {depth} lack b = 1, a replica's last request")
        if self.kind not in (MEASURED, MODELLED):
            raise ProfileError(f"kind = {self.kind!r} must be {MEASURED!r} or {MODELLED!r}")

    @property
    def depths(self) -> tuple[int, ...]:
        """Draft depths that there are points for."""
        return tuple(sorted({point.draft_depth for point in self.points}))

    @property
    def acceptance(self) -> Acceptance | None:
        """How many drafts were accepted, by the note `acceptance`: shares of verifications with 1, 2, ... or more."""
        shares = self.notes.get("acceptance")
        return Acceptance(tuple(map(float, shares))) if shares else None

    def tau(self, b: ArrayLike, draft_depth: int = 0) -> Floats:
        """Seconds per token of each of b running requests; 0 for b = 0.

        Raises:
            ValueError: if the depth has no points.
        """
        curve = sorted((point.b, point.tau_s) for point in self.points if point.draft_depth == draft_depth)
        if not curve:
            raise ValueError(f"tau at draft_depth = {draft_depth} is not known, only at {self.depths}")
        knots, values = np.array(curve, float).T
        at = np.asarray(b, float)
        last, half = knots[-1], max(1.0, knots[-1] / 2)
        rise = max(0.0, values[-1] - np.interp(half, knots, values))
        beyond = rise / max(last - half, 1.0) * np.maximum(at - last, 0.0)
        return np.where(at > 0, np.interp(at, knots, values) + beyond, 0.0)

    def table(self, max_b: int, draft_depth: Depth = 0) -> Floats:
        """tau(0), tau(1), ..., tau(max_b) in seconds, with tau(0) = 0: what routing.makespan reads.

        Raises:
            ValueError: if a depth, or one of a schedule, has no points.
        """
        b = np.arange(max_b + 1)
        if isinstance(draft_depth, int):
            return self.tau(b, draft_depth)
        depths = np.array([depth_at(draft_depth, int(at)) for at in b])
        curves = {depth: self.tau(b, depth) for depth in map(int, np.unique(depths))}
        return np.array([curves[int(depth)][at] for at, depth in zip(b, depths, strict=True)])

    def fastest_depths(self, max_b: int, max_depth: int) -> tuple[int, ...]:
        """The draft depth of least tau, up to max_depth, at each b from 0 to max_b: the best schedule by batch size."""
        depths = [depth for depth in self.depths if depth <= max_depth]
        tables = np.stack([self.table(max_b, depth) for depth in depths])
        return tuple(depths[i] for i in tables.argmin(axis=0))


def load_profile(path: str | Path) -> DecodeModel:
    """Read a decode profile.

    Raises:
        ProfileError: naming the file and what is wrong with it.
    """
    try:
        return _from_profile(json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, ProfileError) as error:
        raise ProfileError(f"decode profile {path}: {error}") from error


def save_profile(model: DecodeModel, path: str | Path) -> None:
    """Write a decode profile that `load_profile` reads back as the same model."""
    points = [{"b": p.b, "tau_s": p.tau_s, "draft_depth": p.draft_depth} for p in model.points]
    own = {"model": model.model, "device": model.device, "engine": model.engine, "kind": model.kind, "points": points}
    Path(path).write_text(json.dumps({**own, **model.notes, **own}, indent=1) + "\n", encoding="utf-8")


def isotonic(values: ArrayLike, weights: ArrayLike) -> Floats:
    """The non-decreasing sequence nearest to the values in weighted least squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(np.asarray(values, float), np.asarray(weights, float), strict=True):
        mean, total, length = float(value), float(weight), 1
        while blocks and blocks[-1][0] >= mean:
            before, its_weight, its_length = blocks.pop()
            mean = (before * its_weight + mean * total) / (its_weight + total)
            total, length = total + its_weight, length + its_length
        blocks.append((mean, total, length))
    return np.repeat([mean for mean, _, _ in blocks], [length for _, _, length in blocks]).astype(float)


def fit_isotonic(samples: Iterable[tuple[int, float, float]], draft_depth: int = 0) -> DecodeModel:
    """The non-decreasing tau nearest to samples, in weighted least squares.

    Args:
        samples: (b, seconds per token, weight); those of one b are averaged. Tokens are a good weight.
        draft_depth: depth that the samples were taken at.

    Raises:
        ValueError: without samples.
    """
    taken = np.array(sorted(samples), float).reshape(-1, 3)
    if not len(taken):
        raise ValueError("tau cannot be fitted without samples")
    b, place = np.unique(taken[:, 0], return_inverse=True)
    weights = np.bincount(place, taken[:, 2])
    tau = isotonic(np.bincount(place, taken[:, 1] * taken[:, 2]) / weights, weights)
    return model_of_curve(b, tau, draft_depth)


def model_of_curve(b: ArrayLike, tau_s: ArrayLike, draft_depth: int = 0) -> DecodeModel:
    """The model through the points of a curve, b ascending.

    If the curve begins above b = 1, tau(1) is taken to be tau at the smallest b: too slow rather than too fast.
    """
    curve = zip(np.asarray(b, int).tolist(), np.asarray(tau_s, float).tolist(), strict=True)
    points = [DecodePoint(at, tau, draft_depth) for at, tau in curve]
    if points[0].b > 1:
        points.insert(0, DecodePoint(1, points[0].tau_s, draft_depth))
    return DecodeModel(tuple(points))


def _name(point: DecodePoint) -> str:
    return f"the point b = {point.b} of draft_depth = {point.draft_depth}"


def _from_profile(profile: Any) -> DecodeModel:
    if not isinstance(profile, dict):
        raise ProfileError(f"must be an object with the key 'points', not {profile!r:.60}")
    points = profile.get("points")
    if not isinstance(points, list) or not points:
        raise ProfileError(f"points = {points!r:.60} must be a list with at least one point")
    names = ("model", "device", "engine", "kind")
    for name in names:
        if not isinstance(profile.get(name), str):
            raise ProfileError(f"{name} = {profile.get(name)!r:.60} must be a string")
    notes = {key: value for key, value in profile.items() if key not in (*names, "points")}
    return DecodeModel(tuple(_point(raw) for raw in points), **{name: profile[name] for name in names}, notes=notes)


def _point(raw: Any) -> DecodePoint:
    if not isinstance(raw, dict):
        raise ProfileError(f"a point must be an object with b and tau_s, not {raw!r:.60}")
    b, depth = _number(raw, "b", None, int), _number(raw, "draft_depth", 0, int)
    return DecodePoint(b, float(_number(raw, "tau_s", None, int | float)), depth)


def _number(raw: dict[str, Any], key: str, default: Any, kind: Any) -> Any:
    value = raw.get(key, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        words = "a whole number" if kind is int else "a number"
        raise ProfileError(f"{key} = {value!r:.60} of the point {raw!r:.80} must be {words}")
    return value
