"""Answers to what-if questions as rows: interactions of pairs, and values without some parts."""

from collections.abc import Iterable

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    AnswerGroup,
    AnswerToken,
    GameValues,
    MeasuredAnswers,
    Provenance,
    Record,
    Run,
)
from hopscope.tracing.games.coalitions import GameMember
from hopscope.tracing.what_if.interactions import Interaction, interactions
from hopscope.tracing.what_if.recall import Players, Recall
from hopscope.tracing.what_if.without import PASSAGE, Without, parts, without


class InteractionRow(Record):
    """The Shapley interaction index of two steps, or of two passages of a step."""

    run: str
    """The run's id."""
    step: int | None
    """The step whose passages these are; None for two steps."""
    first: str
    """The number of a step, or `p:` and the key of a passage."""
    second: str
    names: tuple[str, str]
    """The names of the steps, or the titles of the passages."""
    meter: str
    value: float | None
    """Positive: they need each other. Negative: one makes the other redundant. None if it was not
    measured. In the unit of the meter."""
    low: float | None
    """95 % interval of `value`; None where it has none."""
    high: float | None
    n: int
    """Samples behind each coalition value; 0 when they are exact."""
    estimator: str
    """Names the sample of coalitions, where not all were measured."""
    reason: str | None
    """Why `value` is None."""
    appraisal: str
    """Hash of the measurement's settings."""


class WithoutRow(Record):
    """One meter's value without some steps or passages."""

    run: str
    """The run's id."""
    without: tuple[str, ...]
    """Numbers of steps, and `p:` with the keys of passages."""
    meter: str
    value: float | None
    """Without them; None if it was not measured."""
    low: float | None
    """95 % interval of `value`; None where it has none."""
    high: float | None
    full: float | None
    """With all evidence."""
    difference: float | None
    """`value` minus `full`."""
    difference_low: float | None
    """95 % interval of `difference`; None where it has none."""
    difference_high: float | None
    n: int
    """Samples behind each value; 0 when they are exact."""
    reason: str | None
    """Why a value is None, with the command that measures it."""
    answers: tuple[AnswerGroup, ...] | None
    """The answers sampled without them, grouped by meaning, the heaviest first."""
    full_answers: tuple[AnswerGroup, ...] | None
    """Those sampled with all evidence."""
    tokens: tuple[AnswerToken, ...] | None
    """The greedy answer without them, with GroGU's key tokens."""
    full_tokens: tuple[AnswerToken, ...] | None
    """That with all evidence."""
    answers_reason: str | None
    """Why there are neither answers nor tokens without them."""
    appraisal: str
    """Hash of the measurement's settings."""


UNTOLD = "the meter tells no answers, or another meter of the run tells the same"


def recall(run: Run, provenance: Provenance | None, games: Iterable[GameValues]) -> Recall:
    """The stored values of a measurement.

    Args:
        provenance: settings of the measurement; None if the run was not measured.
        games: stored values of the run.

    Raises:
        UsageError: there are no values with these settings.
    """
    found = None if provenance is None else Recall(run, provenance, games)
    if found is None or not found.meters:
        raise UsageError(
            f"run {run.id[:12]} has no stored coalition values"
            f"{' for this measurement' if provenance else ''}: "
            f"`hopscope credit {run.id[:12]} --again` measures and stores them"
        )
    return found


def interaction_rows(recall: Recall, over: Players) -> list[InteractionRow]:
    """The interactions of all pairs of steps, or of the passages of each step."""
    return [
        _row(recall, meter, found)
        for meter in recall.meters
        for coalitions in recall.coalitions(meter, over)
        for found in interactions(coalitions, recall.sampling(coalitions))
    ]


def without_rows(recall: Recall, names: Iterable[str | int]) -> list[WithoutRow]:
    """Every meter's value without these steps and passages.

    Raises:
        UsageError: the run has no such step or passage.
    """
    removed = parts(recall.run, names)
    return [
        WithoutRow(
            run=recall.run.id,
            without=removed.names,
            meter=found.meter,
            value=found.value.value,
            low=found.value.low,
            high=found.value.high,
            full=found.full.value,
            difference=found.difference.value,
            difference_low=found.difference.low,
            difference_high=found.difference.high,
            n=found.value.n,
            reason=found.value.reason or found.full.reason or found.difference.reason,
            answers=_groups(found.answers),
            full_answers=_groups(found.full_answers),
            tokens=_tokens(found.answers),
            full_tokens=_tokens(found.full_answers),
            answers_reason=None if found.answers else _untold(recall, found),
            appraisal=recall.provenance.settings_hash,
        )
        for found in without(recall, removed)
    ]


def _groups(found: MeasuredAnswers | None) -> tuple[AnswerGroup, ...] | None:
    return (found and found.groups) or None


def _tokens(found: MeasuredAnswers | None) -> tuple[AnswerToken, ...] | None:
    return (found and found.tokens) or None


def _untold(recall: Recall, found: Without) -> str:
    """Why a value has no answers: it is not stored, it is older than they, or none are told."""
    if found.value.reason:
        return found.value.reason
    if any(recall.answers(meter) for meter in recall.meters):
        return UNTOLD
    again = f"`hopscope credit {recall.run.id[:12]} --again` stores them"
    return f"answers were not stored with this measurement: {again}"


def _row(recall: Recall, meter: str, found: Interaction) -> InteractionRow:
    first, second, measured = found.first, found.second, found.measurement
    return InteractionRow(
        run=recall.run.id,
        step=None if first.passage is None else first.step,
        first=_name(first),
        second=_name(second),
        names=(_title(recall.run, first), _title(recall.run, second)),
        meter=meter,
        value=measured.value,
        low=measured.low,
        high=measured.high,
        n=measured.n,
        estimator=measured.estimator,
        reason=measured.reason,
        appraisal=recall.provenance.settings_hash,
    )


def _name(member: GameMember) -> str:
    return str(member.step) if member.passage is None else f"{PASSAGE}{member.passage}"


def _title(run: Run, member: GameMember) -> str:
    if member.passage is None:
        return next(step.name for step in run.steps if step.index == member.step)
    held = (p for step in run.steps for p in step.evidence if p.key == member.passage)
    return next((p.title for p in held), "")
