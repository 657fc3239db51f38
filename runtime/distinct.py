"""Equal inputs are computed once and so give the same result to the last digit.

A model computes a batch as one matrix, and the rows of a matrix product are not all rounded alike:
the instructions for a row depend on its place, on the processor and on the number of threads. Two
equal rows may then differ in their last digits, and a sort by score puts them in a meaningless
order. Computed once they cannot differ, and cost less.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Input = TypeVar("Input", bound=Hashable)
Output = TypeVar("Output")


def each_once(
    inputs: Sequence[Input], compute: Callable[[list[Input]], Iterable[Output]]
) -> list[Output]:
    """One output for each input, in order; equal inputs share theirs.

    Args:
        compute: called once with the distinct inputs, in the order of their first places; not
            called without inputs.
    """
    distinct = list(dict.fromkeys(inputs))
    outputs = dict(zip(distinct, compute(distinct), strict=True)) if distinct else {}
    return [outputs[each] for each in inputs]


def numbered(inputs: Iterable[Hashable]) -> list[int]:
    """The number of each input among the distinct ones, from 0 in the order of their first
    places."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in inputs]
