"""The values of a game's coalitions, from which credits follow without a model."""

from typing import Self

from pydantic import model_validator

from hopscope.runtime.types.credit import Measurement, Provenance
from hopscope.runtime.types.record import Record, Text


class AnswerToken(Record):
    """A token of the reader's answer, with the reader's uncertainty about it."""

    text: Text
    value: float
    """With the evidence, in nats: the entropy before the token, or its negative
    log-probability."""
    without: float | None = None
    """The same without the documents; None where the meter does not compare the two."""
    key: bool
    """Whether the confidence in the answer is made of this token."""


class AnswerGroup(Record):
    """Sampled answers that mean the same."""

    answer: Text
    """The heaviest of them."""
    mass: float
    """The sum of their weights; all masses of one evidence set sum to at most 1."""
    right: bool
    """Whether they agree with a gold answer."""


class MeasuredAnswers(Record):
    """The reader's answers to one evidence set, which a meter's value is made of."""

    tokens: tuple[AnswerToken, ...] = ()
    """Of the greedy answer, by a meter of confidence; empty by others."""
    groups: tuple[AnswerGroup, ...] = ()
    """Of the sampled answers, the heaviest first, by a meter that samples; empty by others."""


class CoalitionValue(Record):
    """The value of one coalition of a game."""

    members: tuple[int, ...]
    """The players that take part, ascending: indices of steps, or places in `GameValues.keys`."""
    evidence: str | None
    """Hash of the evidence. Coalitions with equal evidence have one value. None if there was no
    evidence, because a repeated run failed."""
    measurement: Measurement
    unseen: tuple[Text, ...] = ()
    """Keys of the passages of which the meter showed the reader nothing."""
    answers: MeasuredAnswers | None = None
    """The answers behind the value. Evidence that several coalitions or meters measured has them
    once; None also for values older than m016."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if list(self.members) != sorted({*self.members}):
            raise ValueError("the members of a coalition are ascending")
        return self


class GameValues(Record):
    """One meter's values of the coalitions of a run, from which credits follow without a model."""

    run_id: str
    provenance: Provenance
    meter: str
    step: int | None
    """The step whose passages are the members; None if steps are, or all passages of the run."""
    keys: tuple[Text, ...] = ()
    """Keys of the passages that are the members; empty if steps are."""
    members: tuple[int, ...]
    """All that receive a credit, in the order of the trajectory."""
    players: tuple[int, ...]
    """The members that can change the evidence."""
    remark: str = ""
    """The counterfactual and mode, as estimators name them."""
    comparable: bool = True
    """Whether the value without evidence follows the same rule as with it."""
    measured: int
    """Number of coalitions that were measured; more than `values` where those are bounded."""
    values: tuple[CoalitionValue, ...]

    @property
    def size(self) -> int:
        """Bytes of the values: 8 for each number, 1 for each character. Members and estimators are
        not counted, because runs share them, nor are answers, which are stored compressed."""
        return sum(
            8 * sum(isinstance(each, int | float) for each in (m.value, m.low, m.high, m.n, m.seed))
            + sum(len(text) for text in (m.reason or "", value.evidence or ""))
            + sum(len(key) for key in (*(m.dropped or ()), *value.unseen))
            for value in self.values
            for m in [value.measurement]
        )
