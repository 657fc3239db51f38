"""The interface of answer metrics, and the metrics that compare two texts.

Invariants: of several golds the best counts; an empty answer scores 0; without a gold or an answer
the score is missing with a reason; the estimator names the normaliser.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Protocol

from hopscope.runtime.texts.answers import Normaliser, normalise, normalise_all
from hopscope.runtime.types import Measurement, Passage, Question, Run

NO_ANSWER, NO_GOLD = "there is no answer", "no gold answer"


class Case(NamedTuple):
    """An answer to judge."""

    question: Question
    answer: str | None
    """None for a run without an answer."""
    evidence: tuple[Passage, ...] = ()
    """The evidence behind the answer, for metrics that use it."""


class AnswerMetric(Protocol):
    """Scores answers."""

    @property
    def name(self) -> str: ...

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1."""
        ...

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to reproduce a value."""
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
    """The score of an answer and a gold, in [0, 1]."""
    _: KW_ONLY
    estimator: str
    binary: bool = False
    normaliser: Normaliser | None = None
    """A gold that is empty after this normalisation is left out."""
    normalised: bool = False
    """Whether `compare` is given normalised texts."""

    def score(self, cases: Sequence[Case]) -> list[Measurement]:
        # Most of many answers have equal scores, and creating a record is slower than comparing.
        made: dict[float | str, Measurement] = {}
        return [
            made.get(score) or made.setdefault(score, self._measurement(score))
            for score in self.scores([(case.answer, case.question.answers) for case in cases])
        ]

    def scores(self, pairs: Sequence[tuple[str | None, Sequence[str]]]) -> list[float | str]:
        """The score of each answer against its golds, or the reason why it is missing."""
        if not self.normalised or self.normaliser is None:
            return [self._score(answer, golds) for answer, golds in pairs]
        texts = dict.fromkeys(t for answer, golds in pairs for t in (answer, *golds) if t)
        normal = dict(zip(texts, normalise_all((*texts,), self.normaliser), strict=True))
        compare, found = self.compare, list[float | str]()
        for answer, golds in pairs:
            # Without a gold, or with several, or one that normalises to nothing, it takes longer.
            one = normal.get(golds[0]) if len(golds) == 1 else None
            if answer and one and not answer.isspace():
                found.append(compare(normal[answer], one))
            else:
                found.append(self._score(answer, golds, normal))
        return found

    def _score(
        self, given: str | None, golds: Sequence[str], normal: Mapping[str, str] | None = None
    ) -> float | str:
        found = _comparable(given, golds, self.normaliser)
        if isinstance(found, str):
            return found
        answer = given or ""
        if not answer.strip():
            return 0.0
        if normal is not None:
            answer, found = normal[answer], [normal[gold] for gold in found]
        return max(self.compare(answer, gold) for gold in found)

    def _measurement(self, score: float | str) -> Measurement:
        if isinstance(score, str):
            return Measurement(value=None, reason=score, estimator=self.estimator)
        return Measurement(value=score, estimator=self.estimator)


def comparable(case: Case, normaliser: Normaliser | None = None) -> list[str] | str:
    """The golds to compare the answer with, or the reason why there is none."""
    return _comparable(case.answer, case.question.answers, normaliser)


def _comparable(
    answer: str | None, given: Sequence[str], normaliser: Normaliser | None
) -> list[str] | str:
    if answer is None:
        return NO_ANSWER
    golds = [gold for gold in (dict.fromkeys(given) if len(given) > 1 else given) if gold.strip()]
    if not golds:
        return NO_GOLD
    if normaliser is not None:
        golds = [gold for gold in golds if normalise(gold, normaliser)]
    return golds or f"no gold answer is left after normalisation ({normaliser})"


def case_of(run: Run) -> Case:
    """A run's answer with its last evidence."""
    return Case(run.question, run.answer, run.evidence)
