"""Share a month's budget over the questions that are expected: one price spends it by the end.

A single price is best for a stream of questions of one kind: where it differed between days, moving
a unit of cost from the cheaper day to the dearer one would gain (the budget's dual variable).
Planning again from what was spent corrects a forecast that was wrong.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.budget.allocate import Allocation, Option, allocate
from hopscope.runtime.errors import CorpusError, UsageError, unreadable
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import Record
from hopscope.tracing.learned.route_file import Asked, RouteFile

Floats = NDArray[np.float64]
HALVINGS = 60


class MonthPlan(Record):
    """The price for the rest of a month, and what it is expected to bring."""

    first: date
    """The first day that is planned."""
    last: date
    questions: float
    """Expected until the end."""
    unit: str
    left: float
    """Of the total, before the first day."""
    price: float
    """For `--policy route:FILE,price=`."""
    cost: float
    """Predicted per question."""
    accuracy: float
    """Predicted."""
    spends: float
    """Predicted until the end."""
    arms: dict[str, float]
    """The share of questions that each arm gets."""


def month(text: str) -> tuple[date, date]:
    """The first and the last day of `month=2026-11`.

    Raises:
        UsageError: the text is not of this form.
    """
    kind, _, value = text.partition("=")
    try:
        year, number = (int(each) for each in value.split("-"))
        first = date(year, number, 1)
    except ValueError:
        first = None
    if kind != "month" or first is None:
        raise UsageError(f"--per {text}: give a month as in month=2026-11")
    return first, first.replace(day=monthrange(first.year, first.month)[1])


def expected(path: Path) -> dict[date, float]:
    """The questions expected by day, from JSON lines of `date` and `questions`.

    Raises:
        UsageError: the file cannot be read.
        CorpusError: a line is no such object.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(unreadable(path, error, "expected questions")) from None
    found: dict[date, float] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json_value(line)
            day, count = date.fromisoformat(row["date"]), float(row["questions"])
        except (ValueError, KeyError, TypeError, OverflowError):
            count = -1.0
        if not 0 <= count < float("inf"):
            raise CorpusError(
                f"{path}, line {number}: expected an object as "
                '{"date": "2026-11-23", "questions": 400}'
            )
        found[day] = found.get(day, 0.0) + count
    return found


def days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=each) for each in range((last - first).days + 1)]


def plan(
    sample: Sequence[Asked],
    file: RouteFile,
    *,
    first: date,
    last: date,
    questions: float,
    left: float,
) -> MonthPlan:
    """The least price at which the expected questions cost at most what is left.

    Args:
        sample: questions like those to come.

    Raises:
        UsageError: no question is expected, or what is left does not pay for the cheapest arm.
    """
    if questions <= 0:
        raise UsageError(
            f"no question is expected from {first} to {last}: give --rate or --forecast"
        )
    if left < 0:
        raise UsageError(
            f"{-left:g} {file.unit} more than the total are already spent: give a larger --total, "
            "or wait for the next month"
        )
    utilities, costs = file.predict(sample)
    rows = np.arange(len(sample))

    def chosen(price: float) -> NDArray[np.int64]:
        return file.arms_of(utilities, costs, np.full(len(rows), price))

    def spends(price: float) -> float:
        return float(costs[rows, chosen(price)].mean()) * questions

    low, high = 0.0, max(1.0, 2 * max(point.price for point in file.frontier))
    if spends(high) > left:
        raise UsageError(
            f"{left:g} {file.unit} are too few for {questions:g} questions: the least they are "
            f"expected to take is {spends(high):.4g}"
        )
    if spends(low) <= left:
        high = low
    for _ in range(HALVINGS if high > low else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if spends(middle) <= left else (middle, high)
    arms = chosen(high)
    return MonthPlan(
        first=first,
        last=last,
        questions=questions,
        unit=file.unit,
        left=left,
        price=high,
        cost=float(costs[rows, arms].mean()),
        accuracy=float(utilities[rows, arms].mean()),
        spends=spends(high),
        arms={arm: float((arms == place).mean()) for place, arm in enumerate(file.arms)},
    )


def told(found: MonthPlan) -> list[str]:
    """The plan in lines."""
    shares = ", ".join(f"{arm} {share:.0%}" for arm, share in found.arms.items())
    return [
        f"from {found.first} to {found.last}: {found.questions:g} questions, "
        f"{found.left:g} {found.unit} left",
        f"price {found.price:.6g}: {found.cost:.4g} {found.unit} and accuracy {found.accuracy:.3f} "
        f"per question, predicted; {shares}",
        f"predicted to spend {found.spends:.6g} {found.unit}",
    ]


def share_out(batch: Sequence[Asked], file: RouteFile, total: float) -> Allocation:
    """The arm of each question, as the place among the arms, that spends a total for the highest
    predicted accuracy.

    Raises:
        UsageError: the cheapest arms together cost more.
    """
    utilities, costs = file.predict(batch)
    return allocate(
        [
            [
                Option(
                    retrievals=arm, cost=float(costs[row, arm]), value=float(utilities[row, arm])
                )
                for arm in range(len(file.arms))
            ]
            for row in range(len(batch))
        ],
        total,
    )
