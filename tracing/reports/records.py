"""The report of a run and its credits: the records that `--json` prints and tables show.

The shape is a public contract: scripts read it.
"""

from datetime import date, datetime
from typing import Any

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from hopscope.runtime.types import (
    AnswerGroup,
    AnswerToken,
    PairCounts,
    Record,
    RunStatus,
    Usage,
)


def _flat(record: dict[str, Any], name: str) -> dict[str, Any]:
    """The record with the entries of one field moved up beside the other fields, which win."""
    entries: dict[str, Any] = record.pop(name)
    return record | {key: entry for key, entry in entries.items() if key not in record}


class PassageUtility(Record):
    """The credit of one passage, with the other steps' evidence present."""

    shapley: float | None
    """The passage's share of the step's `leave_one_out`."""
    low: float | None
    """95 % interval of `shapley`."""
    high: float | None
    leave_one_out: float | None
    """The value lost without the passage."""
    reason: str | None = None
    """Why a value is missing."""


class PassageReport(Record):
    id: str
    title: str
    score: float
    new: bool
    """Whether this step was the first to bring the passage into the evidence."""
    credit: dict[str, PassageUtility | None] | None = None
    """By meter. None unless credit was measured over the passages of the step."""


class StepUtility(Record):
    """The step's effect on the value of a meter that has a baseline, such as SePer, the belief in
    the right answer."""

    value: float | None
    """After the step."""
    delta: float | None
    """The step's change of the value, after all earlier steps."""
    low: float | None
    """95 % interval of `delta`."""
    high: float | None
    shapley: float | None
    """The step's Shapley share of the run's total change."""
    leave_one_out: float | None
    """The value that the whole run loses without the step."""
    n: int
    """Samples behind each value."""
    reason: str | None = None
    """Why a value is missing."""
    dropped: tuple[str, ...] = ()
    """Keys of the passages that the reader did not see in full, because the context was too
    long."""
    cut_off: str | None = None
    """The replies that `max_tokens` cut off, as "3 of 10 replies". Their meaning is unknown, and
    the interval allows for it."""
    shares: dict[str, float | None] = Field(default_factory=dict)
    """The step's credit by further rules, written beside the other fields."""

    @model_serializer(mode="wrap")
    def _flat(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _flat(serialise(self), "shares")


class Gain(Record):
    """The effect of a step, or of the whole run, on a value that is itself a gain over no evidence,
    such as GroGU, the confidence of the reader."""

    value: float | None
    """After the step, in the meter's unit."""
    delta: float | None
    reason: str | None = None


class StepReport(Record):
    index: int
    name: str
    kind: str
    query: str | None
    output: str | None
    passages: tuple[PassageReport, ...]
    dangling: tuple[str, ...]
    usage: Usage
    cost: float | None
    """Money, as in `Total`."""
    seconds: float | None
    """None where nobody measured them, as in the record of another program."""
    parse_ok: bool | None
    stop_reason: str | None
    refused: tuple[str, ...]
    """Options of its requests that the reader's server refused."""
    credit: dict[str, StepUtility | Gain | None]
    """By meter; `seper` and `grogu` are always there."""
    per_1000_tokens: float | None
    """Shapley share (else change) per 1,000 tokens spent from this retrieval to the next, by the
    meter that `displays.leading` names: SePer if measured."""

    @property
    def retrieved(self) -> bool:
        """As `Step.retrieved`."""
        return self.query is not None


class TotalUtility(Record):
    before: float | None
    """The value without any passage."""
    after: float | None
    """The value with all evidence."""
    delta: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None
    dropped: tuple[str, ...] = ()
    """As for a step, with all evidence."""
    cut_off: str | None = None
    """As for a step, with all evidence, or else without any."""


class Total(Record):
    usage: Usage
    cost: float | None
    """Money by the table of prices; None if the table does not have the reader or the tokens were
    not counted."""
    currency: str
    prices_read: date | None
    """When the price was read from the page of a hosted service; None for other prices."""
    seconds: float | None
    """As for a step."""
    retrievals: int
    meters: dict[str, TotalUtility | Gain | None]
    """By meter, written beside the other fields; `seper` and `grogu` are always there."""

    @model_serializer(mode="wrap")
    def _flat(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _flat(serialise(self), "meters")


class CoalitionsReport(Record):
    """The stored values of coalitions, over all meters."""

    stored: int
    measured: int
    """More than `stored` where a game has more sampled coalitions than are stored."""
    bytes: int
    """Size of the values; what runs share is not counted."""


class AppraisalReport(Record):
    """The settings of the credits shown, and the cost of measuring them."""

    id: str
    """The settings' hash."""
    reader: str
    """The reader that measured."""
    proxy: bool | None
    """Whether another reader ran; None if the reader that ran is unknown."""
    entailment: str | None
    seed: int
    settings: dict[str, JsonValue]
    measured: datetime | None
    """Time of the last measurement; None for credits stored without one."""
    usage: Usage
    """The reader's usage, over all measurements with these settings."""
    cost: float | None
    """Its money, as in `Total`."""
    pairs: PairCounts | None
    """The entailment model's pairs, likewise; None if they were not counted."""
    seconds: float
    coalitions: CoalitionsReport | None
    """None for measurements older than m012."""
    others: tuple[str, ...]
    """Settings' hashes of the run's other appraisals, the latest last."""


class ContextReport(Record):
    """The reader's answers with the evidence up to a retrieval, which the values are made of."""

    step: int | None
    """The retrieval; None without any evidence."""
    tokens: tuple[AnswerToken, ...] | None
    """Of the greedy answer: GroGU's tokens, of which the keys make the confidence."""
    tokens_reason: str | None
    """Why there are none."""
    groups: tuple[AnswerGroup, ...] | None
    """The sampled answers grouped by meaning, the heaviest first: at most eight. Their masses are
    shares of the weight of all replies whose meaning is known."""
    groups_reason: str | None
    """Why there are none."""


class RunReport(Record):
    id: str
    question: str
    golds: tuple[str, ...]
    workflow: str
    answer: str | None
    status: RunStatus
    stop_reason: str | None
    error: str | None
    reader: str
    retriever: str
    prompts: str | None
    """As `Run.prompts`."""
    seed: int
    steps: tuple[StepReport, ...]
    total: Total
    appraisal: AppraisalReport | None = None
    contexts: tuple[ContextReport, ...] = ()
    """The answers behind the values of the appraisal."""
