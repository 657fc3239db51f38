"""Allocate retrievals to the questions of a batch that has one total budget.

A multiple-choice knapsack: each question takes one of its options, and the sum of the costs stays
within the total. Options below the concave hull of a question are never worth their place; those on
it are bought in the order of their gain per token, which is best up to the one that no longer fits,
as for the fractional problem (Sinha and Zoltners 1979). That problem's value is an upper bound on
any allocation's, so it tells how far from the best this one can be.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import Field

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record


class Option(Record):
    """A number of retrievals for a question."""

    retrievals: int
    cost: float = Field(ge=0)
    value: float


class Allocation(Record):
    """The options chosen for a batch."""

    chosen: tuple[Option, ...]
    """In the order of the questions."""
    cost: float
    value: float
    bound: float
    """Upper bound on the value of any allocation within the total."""

    @property
    def gap(self) -> float:
        """Upper bound on the distance to the best value."""
        return max(0.0, self.bound - self.value)


class _Upgrade(NamedTuple):
    question: int
    option: Option
    cost: float
    value: float

    @property
    def rate(self) -> float:
        return self.value / self.cost


def allocate(options: Sequence[Sequence[Option]], total: float) -> Allocation:
    """Spend `total` on the questions where it gains most.

    Raises:
        UsageError: the cheapest options together exceed the total.
    """
    hulls = [hull(each) for each in options]
    chosen = [each[0] for each in hulls]
    left = total - sum(option.cost for option in chosen)
    if left < 0:
        least = total - left
        raise UsageError(f"a total of {total:g} is too small: the least it takes is {least:g}")
    upgrades = sorted(
        (
            _Upgrade(q, after, after.cost - before.cost, after.value - before.value)
            for q, each in enumerate(hulls)
            for before, after in pairwise(each)
        ),
        key=lambda upgrade: -upgrade.rate,
    )
    bound = sum(option.value for option in chosen)
    bound_left, passed = left, set[int]()
    for upgrade in upgrades:
        share = min(1.0, max(0.0, bound_left) / upgrade.cost)
        bound += share * upgrade.value
        bound_left -= upgrade.cost
        # Later upgrades of a question build on its earlier ones.
        if upgrade.cost <= left and upgrade.question not in passed:
            chosen[upgrade.question] = upgrade.option
            left -= upgrade.cost
        else:
            passed.add(upgrade.question)
    cost, value = (sum(getattr(o, name) for o in chosen) for name in ("cost", "value"))
    return Allocation(chosen=tuple(chosen), cost=cost, value=value, bound=max(bound, value))


def hull(options: Sequence[Option]) -> list[Option]:
    """The options on the upper concave hull, the cheapest first; each costs and brings more than
    the one before.

    Raises:
        UsageError: there are none.
    """
    if not options:
        raise UsageError("a question without options: give at least one")
    found: list[Option] = []
    for option in sorted(options, key=lambda o: (o.cost, -o.value)):
        if found and option.value <= found[-1].value:
            continue
        while len(found) > 1 and _slope(found[-2], found[-1]) <= _slope(found[-2], option):
            found.pop()
        found.append(option)
    return found


def _slope(before: Option, after: Option) -> float:
    return (after.value - before.value) / (after.cost - before.cost)
