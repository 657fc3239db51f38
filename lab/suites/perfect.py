"""The reader that answers if and only if it is shown every gold passage. Its utilities are the
ceiling of any meter, and its credit by a rule the ceiling of that rule.

In a strict chain the values of the coalitions are those of an AND game: Shapley shares are 1/n
each, leave-one-out is 1 each, and trajectory gives everything to the last: (0, ..., 0, 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.lab.suites.known import KnownQuestion
from hopscope.runtime.types import Measurement, Passage, Question


@dataclass(frozen=True)
class Perfect:
    """A utility meter that knows the gold passages of one question."""

    item: KnownQuestion
    name = "perfect"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """1 for evidence that holds all gold passages, else 0."""
        return [
            Measurement(value=float(self.item.holds(shown) == 1), estimator="perfect reader")
            for shown in evidences
        ]
