"""A promise in a policy's file: limits of risks that hold with a level of confidence, and what is
needed to check them later.
"""

import re
from collections.abc import Sequence
from math import isfinite
from typing import Literal, Self

from pydantic import Field, model_validator

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Record, digest
from hopscope.tracing.statistics.drift import Sketch
from hopscope.tracing.statistics.intervals import LEVEL

Measure = Literal["loss", "tokens", "steps", "seconds"]

GRAMMAR = re.compile(
    r"(?P<name>loss|tokens|steps|p(?P<percent>[1-9]\d?)_(?P<unit>seconds|tokens|steps))"
    r"\s*<=\s*(?P<limit>[^@\s]+)\s*(?:@\s*(?P<level>\S+))?"
)
FORMS = "loss<=.02@.95, tokens<=900@.95, steps<=2@.95, p90_steps<=2@.95 or p95_seconds<=3@.95"

MARK = 12
"""Hex digits of a question's mark."""


class Risk(Record):
    """The limit of one risk."""

    name: str
    """As it was given: loss, tokens, steps, p95_seconds, ..."""
    measure: Measure
    """Loss is the utility of always retrieving minus the utility of the policy, per question;
    steps are retrievals."""
    quantile: float | None = Field(default=None, gt=0, lt=1)
    """The quantile over questions that the limit is for; None for the mean."""
    limit: float
    level: float = Field(ge=0.5, lt=1)
    """The promise holds with this confidence."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Raises:
            UsageError: it is not of the form `NAME<=LIMIT@LEVEL`.
        """
        found = GRAMMAR.fullmatch(text.strip())
        if found is None:
            raise UsageError(f"--guarantee {text}: give {FORMS}")
        limit = _number(found["limit"], text)
        level = _number(found["level"], text) if found["level"] else LEVEL
        if not 0.5 <= level < 1:
            raise UsageError(f"--guarantee {text}: the level must be from .5 to below 1")
        if not limit > 0 or (found["name"] == "loss" and limit >= 1):
            most = " and below 1" if found["name"] == "loss" else ""
            raise UsageError(f"--guarantee {text}: the limit must be above 0{most}")
        percent = found["percent"]
        return cls.model_validate(
            {
                "name": found["name"],
                "measure": found["unit"] or found["name"],
                "quantile": int(percent) / 100 if percent else None,
                "limit": limit,
                "level": level,
            }
        )

    def __str__(self) -> str:
        return f"{self.name}<={self.limit:g}@{self.level:g}"


def parse_all(texts: Sequence[str]) -> tuple[Risk, ...]:
    """
    Raises:
        UsageError: one is not of the form, or two limit the same.
    """
    risks = tuple(map(Risk.parse, texts))
    names = [each.name for each in risks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--guarantee: {twice} has two limits; give one")
    return risks


def _number(text: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise UsageError(f"--guarantee {whole}: {text} is no number; give {FORMS}")
    return value


class RiskBound(Record):
    """A risk on the questions of the calibration."""

    risk: Risk
    cap: float | None = None
    """For mean tokens and steps: those of a question count up to this number. A mean without an
    upper end has no bound that holds for every distribution."""
    found: float
    """The mean or quantile over the questions."""
    upper: float | None
    """Its upper bound at the level; None if the questions are too few for one."""


class SignalSample(Record):
    """The values of a signal that the policy saw."""

    name: str
    retrievals: int = Field(ge=0)
    """Retrievals done when it was seen."""
    sketch: Sketch

    @property
    def name_and_place(self) -> str:
        return f"{self.name} after {counted(self.retrievals, 'retrieval')}"


def mark(question: str) -> str:
    """What a policy's file keeps of a question, to know it again. With 48 bits, two of some
    thousand questions have the same mark once in a hundred million files."""
    return digest(question)[:MARK]


class Promise(Record):
    """The promise of a policy."""

    kept: bool
    """False if no threshold kept the promise; the policy then always retrieves."""
    risks: tuple[RiskBound, ...] = Field(min_length=1)
    """Of the threshold that was chosen."""
    method: str
    threshold: float | None
    """The price or threshold that was chosen; None if it always retrieves."""
    tried: int
    """The number of thresholds."""
    calibrated: int
    """Questions of the calibration; the policy has not learned from them."""
    seed: int
    """Of the split."""
    unit: str = "tokens"
    """Of the cost."""
    cost: float
    """The mean per question, on the questions of the calibration."""
    cost_always: float
    """The same for always retrieving."""
    needed: int | None = None
    """The number of calibration questions with which some threshold would keep the promise, if
    they were like these; None if it is kept or if no number would do."""
    signals: tuple[SignalSample, ...] = ()
    """Their signals, for the test of drift."""
    seen: tuple[str, ...] = ()
    """Marks of all questions that it was learned from or calibrated on, sorted; empty in files
    that are older than this field."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kept == (self.threshold is None):
            raise ValueError("a promise that is kept has a threshold, and no other has one")
        return self

    def __str__(self) -> str:
        return " and ".join(str(each.risk) for each in self.risks)
