"""The probability that answers are right, given the question and its gold answers.

An entailment model sees one gold answer at a time, and the gold that agrees best counts. A model
that sees all golds together implements `AnswerJudge`; it knows more, because aliases show which of
their words matter.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.ports import Entailment, Statement


class Answered(NamedTuple):
    """An answer to a question with known right answers."""

    question: str
    golds: tuple[str, ...]
    """Aliases: each of them alone is right."""
    answer: str


@runtime_checkable
class AnswerJudge(Protocol):
    """Gives the probability that answers are right."""

    def correctness(self, answered: Sequence[Answered]) -> list[float]:
        """P(right) for each answer, in order."""
        ...


def correctness(entailment: Entailment, answered: Sequence[Answered]) -> list[float]:
    """P(right) for each answer: the judge's value, or the best P(answer entails gold).

    Blank golds are left out; without other golds P(right) is 0.

    Raises:
        EntailmentError: the model failed.
    """
    if isinstance(entailment, AnswerJudge):
        return entailment.correctness(answered)
    golds = [[gold for gold in dict.fromkeys(row.golds) if gold.strip()] for row in answered]
    statements = [
        Statement(row.question, row.answer, gold)
        for row, known in zip(answered, golds, strict=True)
        for gold in known
    ]
    results = iter(entailment.classify(statements))
    return [max((next(results).entailment for _ in known), default=0.0) for known in golds]
