"""Pairs of texts to compare: in what form they are equal, and how their comparison was come by.

A pair is ordered; premise and hypothesis the other way round are another one.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Pairs


class Judged(NamedTuple):
    """One distribution for each statement, and what they cost together."""

    probabilities: list[Probabilities]
    pairs: Pairs


@runtime_checkable
class Counting(Protocol):
    """An entailment that tells how it came by its answers."""

    def judged(self, statements: Sequence[Statement]) -> Judged:
        """As `Entailment.classify`, with the count."""
        ...


def judged(entailment: Entailment, statements: Sequence[Statement]) -> Judged:
    """Ask any entailment; one that does not count computes all it is asked.

    Raises:
        EntailmentError: the model failed.
    """
    if isinstance(entailment, Counting):
        return entailment.judged(statements)
    count = len(statements)
    return Judged(entailment.classify(statements), Pairs(asked=count, computed=count))


def normalised(statement: Statement) -> Statement:
    """The statement in the form in which equal ones are one: composed characters, single spaces.
    Letters and punctuation stay, because models see a difference there."""
    return Statement(*(_normalised(text) for text in statement))


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
