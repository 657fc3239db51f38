"""The finished items of an experiment as plain rows for tables: there are tens of thousands.

The credits are those of one appraisal, the same for all runs: see `store.experiments.appraisals`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

Value = float | str
"""A number, or the reason why it is missing."""

NOT_APPRAISED = "not appraised"


class QuestionRow(NamedTuple):
    """A question. Equal questions of several experiments are one question."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    """Gold aliases."""
    kind: str = ""
    hops: int | None = None


class Utility(NamedTuple):
    """A meter's values for the final evidence of a run."""

    level: Value = NOT_APPRAISED
    """The value with all evidence."""
    delta: Value = NOT_APPRAISED
    """The change from the value without evidence."""


NO_UTILITY = Utility()


class ResultRow(NamedTuple):
    """The result of one finished item: a question for an arm."""

    experiment: str
    """Name of the experiment."""
    arm: str
    """Label of the arm."""
    question: QuestionRow
    run_id: str | None
    """None if the item failed before there was a run."""
    error: str | None = None
    """The error of a failed item."""
    answer: str | None = None
    retrievals: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    """Output tokens of thoughts, included in `output_tokens`."""
    cached_tokens: int = 0
    uncounted: int = 0
    """As in `Usage`."""
    seconds: float | None = 0.0
    """None where nobody measured them."""
    utilities: Mapping[str, Utility] = MappingProxyType({})
    """By meter, if measured."""

    def utility(self, meter: str) -> Utility:
        return self.utilities.get(meter, NO_UTILITY)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Retrieval(NamedTuple):
    """A step of a run that sent a query to the retriever, with its credit."""

    run_id: str
    ordinal: int
    """From 1: the run's first, second, … retrieval."""
    step: int
    """Its index in the run."""
    tokens: int
    """Tokens from this retrieval to the next: the reader's cost of its passages."""
    shares: Mapping[str, Mapping[str, Value]] = MappingProxyType({})
    """By meter and rule, if measured."""
    uncounted: int = 0
    """Number of those calls whose tokens are unknown."""

    def share(self, meter: str, rule: str) -> Value:
        return self.shares.get(meter, {}).get(rule, NOT_APPRAISED)
