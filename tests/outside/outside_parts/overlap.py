"""What evidence is worth by its words: the share of the question's words that stand in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Display, UtilityMeter
from hopscope.runtime.types import Measurement, Passage, Question

DISPLAY = Display("Overlap", unit="share of words", digits=3, full_bar=1.0)


@dataclass(frozen=True)
class Overlap:
    shortest: int
    name: str = "overlap"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        words = {word for word in question.text.lower().split() if len(word) >= self.shortest}
        return [self._one(words, evidence) for evidence in evidences]

    def _one(self, words: set[str], evidence: tuple[Passage, ...]) -> Measurement:
        if not words:
            return Measurement(value=None, reason="the question has no long words")
        there = {word for passage in evidence for word in passage.text.lower().split()}
        return Measurement(value=len(words & there) / len(words), n=len(words))


def build(*, shortest: int = 1) -> UtilityMeter:
    return Overlap(shortest)
