"""Pairs of texts to compare: their normal form, and the count of cached and computed pairs.

A pair is ordered; premise and hypothesis the other way round are another pair.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import PairCounts


class CountedRelations(NamedTuple):
    """One distribution for each statement, and the pairs counted for all of them."""

    probabilities: list[Probabilities]
    pairs: PairCounts


@runtime_checkable
class CountingEntailment(Protocol):
    """An entailment that counts its cached and computed pairs."""

    def classify_counted(self, statements: Sequence[Statement]) -> CountedRelations:
        """As `Entailment.classify`, with the count."""
        ...


def classify_counted(entailment: Entailment, statements: Sequence[Statement]) -> CountedRelations:
    """Classify with any entailment; one that does not count computes every pair.

    Raises:
        EntailmentError: the model failed.
    """
    if isinstance(entailment, CountingEntailment):
        return entailment.classify_counted(statements)
    count = len(statements)
    return CountedRelations(
        entailment.classify(statements), PairCounts(asked=count, computed=count)
    )


def normalised(statement: Statement) -> Statement:
    """The statement's normal form: composed characters, single spaces. Letters and punctuation
    stay, because models see a difference there."""
    return Statement(*(_normalised(text) for text in statement))


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
