"""Sides that take turns, and the ratios of their times with their spread."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import NamedTuple


class PeerMissingError(Exception):
    """A peer cannot be imported or run here; the message says why."""


class Spread(NamedTuple):
    """A figure over rounds."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.3g} [{self.least:.3g}, {self.greatest:.3g}]"


class Table(NamedTuple):
    """A printed table."""

    heading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def __str__(self) -> str:
        head = f"| {' | '.join(self.columns)} |\n|---{'|--:' * (len(self.columns) - 1)}|"
        rows = "\n".join(f"| {' | '.join(row)} |" for row in self.rows)
        return f"\n{self.heading}\n\n{head}\n{rows}"


def taken_in_turn(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of processor time of each side in each round. Every other round begins with the last
    side, so that none always follows the same."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for place in range(rounds):
        order = list(sides) if place % 2 == 0 else list(sides)[::-1]
        for name in order:
            begun = process_time()
            sides[name]()
            seconds[name].append(process_time() - begun)
    return seconds


def spread(values: list[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def ratio(slow: list[float], fast: list[float]) -> Spread:
    """Of the seconds of two sides, round by round."""
    return spread([a / b for a, b in zip(slow, fast, strict=True)])
