"""A monotone map from a score to a probability, by its corners, as isotonic regression gives it."""

from bisect import bisect_right
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record


class Calibration(Record):
    """Piecewise linear; constant beyond its ends."""

    version: int = Field(default=1, ge=1, le=1)
    scores: tuple[float, ...] = Field(min_length=1)
    """Ascending."""
    values: tuple[float, ...]
    """Of the scores, never falling."""

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


def read(path: Path) -> Calibration:
    """
    Raises:
        UsageError: there is no such file, or it is none of these.
    """
    try:
        return Calibration.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"calibration {path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"calibration {path}: {error.errors()[0]['msg']}") from None
