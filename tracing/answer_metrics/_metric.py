"""What an answer metric is, and the form of those that compare two texts.

Invariants: of several golds the best counts; an empty answer scores 0; without a gold or an answer
there is no score but a reason; the estimator names the normaliser.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Protocol

from hopscope.runtime.answers import Normaliser, normalise
from hopscope.runtime.types import Measurement, Passage, Question, Run

NO_ANSWER, NO_GOLD = "there is no answer", "no gold answer"


class Case(NamedTuple):
    """An answer to judge."""

    question: Question
    answer: str | None
    """None where a run came to no answer."""
    evidence: tuple[Passage, ...] = ()
    """What the answer was written from, for metrics that look at it."""


class AnswerMetric(Protocol):
    """Tells how good answers are."""

    @property
    def name(self) -> str: ...

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1."""
        ...

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to compute a value again."""
        ...

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        """One value for each case, in order; the higher the better.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        ...


@dataclass(frozen=True)
class StringMetric:
    """A metric that compares the answer's text with each gold's."""

    name: str
    compare: Callable[[str, str], float]
    """Of answer and gold, in [0, 1]."""
    _: KW_ONLY
    estimator: str
    binary: bool = False
    normaliser: Normaliser | None = None
    """What must leave something of a gold, or the gold cannot be compared with."""

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        # Of many answers most score alike, and a record takes longer to make than to compare.
        made: dict[float | str, Measurement] = {}
        return [
            made.get(found) or made.setdefault(found, self._measurement(found))
            for found in map(self._score, cases)
        ]

    def _score(self, case: Case) -> float | str:
        """Or why there is none."""
        found = comparable(case, self.normaliser)
        if isinstance(found, str):
            return found
        answer = case.answer or ""
        if not answer.strip():
            return 0.0
        if len(found) == 1:
            return self.compare(answer, found[0])
        return max(self.compare(answer, gold) for gold in found)

    def _measurement(self, found: float | str) -> Measurement:
        if isinstance(found, str):
            return Measurement(value=None, reason=found, estimator=self.estimator)
        return Measurement(value=found, estimator=self.estimator)


def comparable(case: Case, normaliser: Normaliser | None = None) -> list[str] | str:
    """The golds that the answer can be compared with, or why there is nothing to compare."""
    if case.answer is None:
        return NO_ANSWER
    given = case.question.answers
    golds = [gold for gold in (dict.fromkeys(given) if len(given) > 1 else given) if gold.strip()]
    if not golds:
        return NO_GOLD
    if normaliser is not None:
        golds = [gold for gold in golds if normalise(gold, normaliser)]
    return golds or f"no gold answer is left after normalisation ({normaliser})"


def case_of(run: Run) -> Case:
    """A run's answer, with the evidence it ended with."""
    return Case(run.question, run.answer, run.evidence)
