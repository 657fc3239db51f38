"""Readings of contexts: the reader's confidence by each score, and whether its answer is right.

A reading holds GroGU and the correctness of the greedy answer; `validity.grogu` and
`suites.two_readers` compare readings.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopscope.lab.suites.known import KnownQuestion
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Measurement, Passage, Question
from hopscope.tracing.answer_metrics import contains
from hopscope.tracing.meters import grogu
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.meters.grogu.key_tokens import Score
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.statistics.over_questions import Column

SCORES: tuple[tuple[Score, str], ...] = (
    ("ppl", "PPL"),
    ("key_ppl", "KeyPPL"),
    ("entropy", "Entropy"),
    ("key_entropy", "KeyEntropy"),
)
"""Scores with their names in the paper's tables."""

Context = tuple[Passage, ...]


class Reading(NamedTuple):
    """A reader's result with one context."""

    utilities: dict[Score, Measurement]
    """GroGU by score."""
    right: bool | None
    """Whether its greedy answer contains a gold; None without an answer."""

    def utility(self, score: Score) -> float | None:
        return self.utilities[score].value


Readings = Sequence[Sequence[Reading]]
"""Of each question with each of its contexts, (question, context)."""

NO_ANSWER = "the reader gave no answer"
NO_OPTIONS: Mapping[str, Any] = {}


def read(
    reader: Reader,
    items: Sequence[KnownQuestion],
    asked: Sequence[Sequence[Context]],
    options: Mapping[str, Any] = NO_OPTIONS,
) -> list[list[Reading]]:
    """Read each question with each of its contexts. The reader should cache its answers, which all
    scores share.

    Args:
        options: of GroGU, but for its score.

    Raises:
        ReaderError: the model failed.
    """
    meters = {name: grogu.build(reader, **{**options, "score": name}) for name, _ in SCORES}
    return [_read(meters, i.question, shown) for i, shown in zip(items, asked, strict=True)]


def _read(
    meters: Mapping[Score, GroGU], question: Question, shown: Sequence[Context]
) -> list[Reading]:
    measured = {name: meter.measure(question, shown) for name, meter in meters.items()}
    sure = meters["entropy"].confidences(question, shown)
    answers = [each.answer.text if isinstance(each, grogu.Confidence) else None for each in sure]
    verdicts = contains.build().score([Case(question, answer) for answer in answers])
    return [
        Reading(
            {name: values[place] for name, values in measured.items()},
            None if verdict.value is None else verdict.value == 1,
        )
        for place, verdict in enumerate(verdicts)
    ]


def compare(score: Score, one: Reading, other: Reading) -> int | None:
    """The sign of the difference in utility: 1 if the first is higher; None if either is
    unmeasured."""
    a, b = one.utility(score), other.utility(score)
    return None if a is None or b is None else (a > b) - (a < b)


def why_missing(found: Readings, score: Score) -> str:
    """The reason for the first missing utility."""
    reasons = (each.utilities[score].reason for row in found for each in row)
    return next((reason for reason in reasons if reason), "nothing was measured")


def column(values: Sequence[float | None], *, reason: str, binary: bool = True) -> Column:
    """One value for each question; None was not measured, for `reason`."""
    return clustered([[value] for value in values], reason=reason, binary=binary)


def clustered(
    values: Sequence[Sequence[float | None]], *, reason: str, binary: bool = False
) -> Column:
    """The mean of several values for each question, which are drawn together; (question, value)."""
    known = [[value for value in row if value is not None] for row in values]
    counts = np.array([len(row) for row in known], float)
    return Column(
        np.array([sum(row) for row in known], float),
        counts,
        counts,
        np.array([len(row) for row in values], float),
        binary=binary,
        reason=reason,
    )
