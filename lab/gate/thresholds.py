"""Thresholds for numbers with intervals, as assertions of tests.

A number that was not measured never passes. An interval that contains the threshold decides
nothing: by default only a number shown to be on the wrong side fails; with `shown=True` only one
shown to be on the right side passes.
"""

from typing import Protocol


class Measured(Protocol):
    """A number with an interval: a `Measurement`, a row of credits, a mean, a difference."""

    @property
    def value(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


class Expected:
    """A number whose thresholds are asserted.

    expect(run.credits[0]).at_least(0.2)
    """

    def __init__(self, number: Measured) -> None:
        self._number = number

    def at_least(self, least: float, *, shown: bool = False) -> None:
        """Fail if the number is below `least` with its whole interval; with `shown`, unless its
        whole interval is at or above it.

        Raises:
            AssertionError: it fails, or was not measured.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        value, low, high = self._measured()
        if (low if shown else high) < least:
            below = "not shown to be at least" if shown and high >= least else "below"
            raise AssertionError(f"{_told(value, low, high)} is {below} {least:g}")

    def at_most(self, most: float, *, shown: bool = False) -> None:
        """Fail if the number is above `most` with its whole interval; with `shown`, unless its
        whole interval is at or below it.

        Raises:
            AssertionError: it fails, or was not measured.
        """
        __tracebackhide__ = True  # pytest shows the line of the test
        value, low, high = self._measured()
        if (high if shown else low) > most:
            above = "not shown to be at most" if shown and low <= most else "above"
            raise AssertionError(f"{_told(value, low, high)} is {above} {most:g}")

    def _measured(self) -> tuple[float, float, float]:
        """The value and its interval; an exact number is its own interval."""
        number = self._number
        if number.value is None:
            raise AssertionError(f"not measured: {number.reason or 'nobody tells why'}")
        low = number.value if number.low is None else number.low
        high = number.value if number.high is None else number.high
        return number.value, low, high


def _told(value: float, low: float, high: float) -> str:
    interval = "" if low == high == value else f" [{low:.3f}, {high:.3f}]"
    return f"{value:.3f}{interval}"
