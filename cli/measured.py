"""How measurements, shares and means are printed, and why some are missing."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hopscope.cli.render import note, number, plain

if TYPE_CHECKING:
    from hopscope.runtime.types import Measurement
    from hopscope.tracing.averages import Average


def value(found: "Measurement | None") -> str:
    """A value with its interval, where it has one."""
    if found is None or found.value is None:
        return "-"
    return number(found.value) + _interval(found.low, found.high)


def mean(found: "Average") -> str:
    """A mean with its interval and what it covers."""
    within = _interval(found.low, found.high)
    return f"{number(found.mean)}{within}  ({found.measured} of {found.total} measured)"


def say_why(found: "Iterable[Measurement]") -> None:
    """Remark why measurements are missing, each reason once."""
    for reason in dict.fromkeys(m.reason for m in found if m.reason):
        note(f"not measured: {plain(reason)}")


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"
