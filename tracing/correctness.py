"""How likely answers are right, given the question and its gold answers.

An entailment model sees one gold answer at a time, and an answer is as right as the gold that
agrees with it best makes it. A model that can see all golds together says so by being an
`AnswerJudge`; it knows more, since aliases tell which of their words matter.
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
    """Knows how likely answers are right."""

    def correctness(self, answered: Sequence[Answered]) -> list[float]:
        """P(right) for each answer, in order."""
        ...


def correctness(entailment: Entailment, answered: Sequence[Answered]) -> list[float]:
    """P(right) for each answer: the judge's word, or the best P(answer entails gold).

    Blank golds are left out; without any other an answer is not right.

    Raises:
        EntailmentError: the model failed.
    """
    if isinstance(entailment, AnswerJudge):
        return entailment.correctness(answered)
    golds = [[gold for gold in dict.fromkeys(row.golds) if gold.strip()] for row in answered]
    asked = [
        Statement(row.question, row.answer, gold)
        for row, known in zip(answered, golds, strict=True)
        for gold in known
    ]
    found = iter(entailment.classify(asked))
    return [max((next(found).entailment for _ in known), default=0.0) for known in golds]
