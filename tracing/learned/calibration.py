"""The file of a monotone map from a score to a probability: the corners of an isotonic
regression."""

from bisect import bisect_right
from typing import Literal, Self

from pydantic import Field, model_validator

from hopscope.tracing.learned.files import LearnedFile


class Calibration(LearnedFile):
    """Piecewise linear; constant beyond its ends."""

    kind: Literal["tasr"] = "tasr"
    version: Literal[2] = 2
    scores: tuple[float, ...] = Field(min_length=1)
    """Ascending."""
    values: tuple[float, ...]
    """One for each score, never falling."""

    @model_validator(mode="after")
    def _monotone(self) -> Self:
        ascending = all(list(each) == sorted(each) for each in (self.scores, self.values)) and len(
            self.scores
        ) == len(self.values)
        if not ascending:
            raise ValueError("scores and values must be as many and ascend")
        return self

    def of(self, score: float) -> float:
        """The value of a score."""
        after = bisect_right(self.scores, score)
        if after == 0:
            return self.values[0]
        if after == len(self.scores):
            return self.values[-1]
        low, high = self.scores[after - 1], self.scores[after]
        share = (score - low) / (high - low)
        return self.values[after - 1] + share * (self.values[after] - self.values[after - 1])
