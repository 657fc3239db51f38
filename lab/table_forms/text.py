"""Cells as text, without control characters, which answers and questions may contain."""

from typing import NamedTuple

from hopscope.lab.table_forms.table import Cell
from hopscope.runtime.texts.storable import line
from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.over_questions import Difference, Estimate

MISSING = "-"


class CellText(NamedTuple):
    """The parts of a cell."""

    value: str
    interval: str = ""
    coverage: str = ""
    """Measured questions of all, as in 38/40."""

    @property
    def line(self) -> str:
        """All parts on one line."""
        coverage = f"({self.coverage})" if self.coverage else ""
        return " ".join(part for part in (self.value, self.interval, coverage) if part)


def cell_text(cell: Cell, digits: int = 2) -> CellText:
    match cell:
        case None:
            return CellText(MISSING)
        case str():
            return CellText(line(cell))
        case bool() | int():
            return CellText(str(cell))
        case float() if 0 < cell < 0.5 * 10**-digits:
            return CellText(f"<{10**-digits:.{digits}f}")
        case float():
            return CellText(number(cell, digits))
        case Measurement():
            return CellText(number(cell.value, digits), _interval(cell.low, cell.high, digits))
        case Estimate() | Difference():
            value = number(cell.value, digits)
            if isinstance(cell, Difference) and cell.value is not None and cell.value > 0:
                value = f"+{value}"
            return CellText(
                value, _interval(cell.low, cell.high, digits), f"{cell.measured}/{cell.total}"
            )


def number(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    text = f"{value:.{digits}f}"
    # -0.00 is printed as 0.00.
    return f"{0:.{digits}f}" if float(text) == 0 else text


def _interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"
