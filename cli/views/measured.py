"""Prints measurements, shares and means, and the reasons of missing ones."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hopscope.api.views.render import note, number, plain

if TYPE_CHECKING:
    from hopscope.runtime.types import Measurement
    from hopscope.tracing.statistics.over_questions import Statistic


def value(found: "Measurement | None") -> str:
    """A value with its interval, if it has one."""
    if found is None or found.value is None:
        return "-"
    return number(found.value) + _interval(found.low, found.high)


def mean(found: "Statistic") -> str:
    """A mean with its interval and its number of measurements."""
    within = _interval(found.low, found.high)
    return f"{number(found.value)}{within}  ({found.measured} of {found.total} measured)"


def say_why(found: "Iterable[Measurement]") -> None:
    """Print the reasons of missing measurements, each once."""
    for reason in dict.fromkeys(m.reason for m in found if m.reason):
        note(f"not measured: {plain(reason)}")


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
