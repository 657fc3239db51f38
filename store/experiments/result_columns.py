"""The finished items of an experiment as columns of numbers: there are hundreds of thousands, and a
record for each would take a minute.

The credits are those of one appraisal, the same for all runs: see `store.experiments.appraisals`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hopscope.store.experiments.result_rows import QuestionRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.int64]
    Flags = NDArray[np.bool_]


class Numbers(NamedTuple):
    """A number of each row; NaN where it is missing."""

    values: "Floats"
    reasons: Mapping[int, str]
    """Why it is missing, by row; rows that nobody measured have none."""


@dataclass(frozen=True)
class ResultColumns:
    """The finished items, in the order of the plan: all columns have one entry for each."""

    experiment: str
    """Its name."""
    labels: Sequence[str]
    """Of the arms."""
    questions: Sequence[QuestionRow]
    """Distinct ones, in the order of their first item."""
    arm: "Places"
    """Index of its label."""
    question: "Places"
    """Index of its question."""
    run: "Places"
    """Row number of the run; -1 if the item failed before there was one."""
    failed: "Flags"
    answers: Sequence[str | None]
    retrievals: "Floats"
    usage: Mapping[str, "Floats"]
    """The columns of `Usage`, by name."""
    seconds: "Floats"
    """NaN where nobody measured them."""
    levels: Mapping[str, Numbers]
    """By meter: the value with all evidence."""
    deltas: Mapping[str, Numbers]
    """By meter: the change from the value without evidence."""


@dataclass(frozen=True)
class RetrievalColumns:
    """The retrievals of the finished items' runs, by run and in order, with a meter's shares."""

    item: "Places"
    """Index of its item in `ResultColumns`."""
    ordinal: "Places"
    """From 1: the run's first, second, … retrieval."""
    tokens: "Floats"
    """Tokens from this retrieval to the next: the reader's cost of its passages."""
    uncounted: "Floats"
    """Number of those calls whose tokens are unknown."""
    shares: Mapping[str, Numbers]
    """By rule."""
