"""Budgets as they are written: `steps=2.5`, or `nq:steps=1,squad:steps=.97` for sets."""

from collections.abc import Sequence
from math import isfinite

from hopscope.runtime.errors import UsageError


def parse(text: str | None, *, unit: str, option: str) -> dict[str, float]:
    """The mean costs by set; under the empty name that of all questions.

    Args:
        option: for messages.

    Raises:
        UsageError: the text is not of this form, or is of another unit.
    """
    found: dict[str, float] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, number = part.strip().rpartition("=")
        place, _, its = name.rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not equals or its != unit or not (value >= 0 and isfinite(value)):
            raise UsageError(
                f"{option} {part.strip()}: give {unit}=N or SET:{unit}=N, the mean {unit} per "
                "question"
            )
        if place in found:
            raise UsageError(f"{option}: {place or unit} is given twice")
        found[place] = value
    return found


def of_each(budgets: dict[str, float], sets: Sequence[str]) -> dict[str, float]:
    """A budget for each set: its own, else that of all questions.

    Raises:
        UsageError: there is none for all, or the rows name no sets.
    """
    named = [name for name in sets if name]
    if "" not in budgets or not named:
        raise UsageError(
            "--budget-per set needs a budget of all questions and rows that name their set"
        )
    return {name: budgets.get(name, budgets[""]) for name in named}
