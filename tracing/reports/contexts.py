"""The reader's answers after each retrieval, from the stored values of coalitions."""

from collections.abc import Iterable

from hopscope.runtime.types import Credit, GameValues, MeasuredAnswers, Provenance, Run
from hopscope.tracing.games.recorded_answers import answers
from hopscope.tracing.reports.records import ContextReport

NO_TOKENS = "no meter of confidence, such as grogu, measured this"
NO_GROUPS = "no meter that samples answers, such as seper, measured this"
CONFIDENCE, SAMPLED = "grogu", ("seper", "seper_hard", "semantic_entropy")
"""Meters whose values are made of tokens, and of sampled answers."""


def contexts(
    run: Run,
    credits: Iterable[Credit],
    provenance: Provenance | None,
    games: Iterable[GameValues],
) -> tuple[ContextReport, ...]:
    """The answers without evidence, then after each retrieval, with all evidence up to it.

    Args:
        credits: of the run.
        provenance: the measurement that is shown; None if the run was not measured.
        games: values of the run; those of other measurements are left out.
    """
    own = [game for game in games if game.provenance == provenance]
    known = answers(own)
    evidence = _evidence(own)
    measured = {
        (credit.meter, credit.step): credit.measurement.reason
        for credit in credits
        if credit.provenance == provenance and credit.rule == "level" and credit.passage is None
    }
    found = []
    for step in (None, *(step.index for step in run.steps if step.retrieved)):
        told = known.get(evidence.get(step, ""), MeasuredAnswers())
        found.append(
            ContextReport(
                step=step,
                tokens=told.tokens or None,
                tokens_reason=None
                if told.tokens
                else _reason(run, (CONFIDENCE,), measured, step, NO_TOKENS),
                groups=told.groups or None,
                groups_reason=None
                if told.groups
                else _reason(run, SAMPLED, measured, step, NO_GROUPS),
            )
        )
    return tuple(found)


def _evidence(games: Iterable[GameValues]) -> dict[int | None, str]:
    """The hash of the evidence up to each step, as the games among steps recorded it."""
    found: dict[int | None, str] = {}
    for game in games:
        if game.step is not None or game.keys:
            continue
        by_members = {value.members: value.evidence for value in game.values}
        for step in (None, *game.members):
            upto = tuple(p for p in game.players if step is not None and p <= step)
            if (evidence := by_members.get(upto)) is not None:
                found.setdefault(step, evidence)
    return found


def _reason(
    run: Run,
    meters: Iterable[str],
    measured: dict[tuple[str, int | None], str | None],
    step: int | None,
    none: str,
) -> str:
    """Why there are no answers: of a meter that measured the step, else that none did."""
    if not measured:
        return f"the run was not measured: `hopscope credit {run.id[:12]}` does"
    for meter in meters:
        if (meter, step) in measured:
            reason = measured[meter, step]
            again = f"`hopscope credit {run.id[:12]} --again` stores them"
            return reason or f"answers were not stored with this measurement: {again}"
    return none
