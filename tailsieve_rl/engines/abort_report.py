"""What a server answers to an abort of several requests."""

from __future__ import annotations

from typing import TypedDict


class AbortReport(TypedDict):
    """Every id asked for is in exactly one of the four lists."""

    aborted: list[str]
    finished: list[str]
    """Ended by themselves before the abort reached them: their generate calls return complete responses."""
    unknown: list[str]
    """Not here: never arrived, in which case they will not run when they do, or over before the abort came."""
    remaining: list[str]
    """Not verified to be out of the engine within the time allowed."""
    seconds: float
    tokens: dict[str, int]
    """Tokens that each had generated."""


def nothing_aborted() -> AbortReport:
    """A report to be filled."""
    return AbortReport(aborted=[], finished=[], unknown=[], remaining=[], seconds=0.0, tokens={})
