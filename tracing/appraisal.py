"""The credits of a finished run: one value for each step (or each passage of a step), meter and
rule.

Credits follow from the run's record alone; only a replay game (see `replay`) runs the workflow
again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import (
    Credit,
    GameValues,
    GenerationRequest,
    Measurement,
    Provenance,
    Question,
    Run,
)
from hopscope.tracing import credit_budget
from hopscope.tracing.credit import leave_one_out, trajectory
from hopscope.tracing.games.coalitions import (
    EMPTY,
    NO_EVIDENCE,
    Coalition,
    Coalitions,
    Content,
    Evidence,
    EvidenceValues,
    Game,
)
from hopscope.tracing.games.frozen import over_steps
from hopscope.tracing.games.recorded import once, record
from hopscope.tracing.games.rule import CreditRule, gain

CreditRow = tuple[int | None, str | None, str, Measurement]
"""Step, passage, rule and value."""
CreditKey = tuple[int | None, str | None, str, str]
"""Step, passage, rule and meter."""

_WHOLE_STEP = leave_one_out.NAME
"""The rule whose credit of a step is shared among the step's passages."""


class Shares(NamedTuple):
    """Credits, and the coalition values that they follow from."""

    credits: list[Credit]
    games: list[GameValues]


class _Measured(NamedTuple):
    """What one meter measures."""

    values: EvidenceValues
    needed: list[Evidence]
    played: list[Coalitions]
    allowed_rules: list[tuple[CreditRule, ...]]
    """Of each game played."""
    reasons: Sequence[Mapping[str, str]]
    """Why rules are left out, of each game played."""


def appraise(
    run: Run,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    provenance: Provenance,
    *,
    games: Sequence[Game] | None = None,
) -> list[Credit]:
    """The credits of `share` alone."""
    return share(run, meters, rules, provenance, games=games).credits


def share(
    run: Run,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    provenance: Provenance,
    *,
    games: Sequence[Game] | None = None,
    known: Mapping[str, Mapping[Content, Measurement]] | None = None,
    calls: int | None = None,
    ask: Callable[[Sequence[GenerationRequest]], object] | None = None,
) -> Shares:
    """The credits of all steps, or of the members of the given `games`.

    For each meter and a game over steps: `level` of step None, the value without evidence; for
    each step `level`, the value of all evidence up to it, where a rule needed that (`trajectory`
    needs all); one credit by each rule, named after the rule; and `total` of step None, the value
    of all evidence minus that of none. For a game over the passages of a step: one credit by each
    rule for each passage, and the step's own `leave_one_out`, the total that they share. Each meter
    measures all evidence sets in one call.

    A meter whose `comparable_baseline` is False (GroGU with key tokens) gets only the trajectory
    rule in a game whose empty coalition has no evidence: the other rules include that value.

    Args:
        known: values by meter and evidence that were measured before and are not measured again.
        calls: the credit budget, the most replies that each meter draws; None for no limit. Rules
            that it does not suffice for are unmeasured.
        ask: gets the replies that the meters will ask for, of all meters together, so that their
            readers' cache has them from one call. Without a credit budget.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    credits: list[Credit] = []
    recorded: list[GameValues] = []
    measured: list[_Measured] = []
    if games is None:
        games = [over_steps(run)]
    for meter in meters:
        values = EvidenceValues(run.question, meter, (known or {}).get(meter.name))
        played = [Coalitions(game, values) for game in games]
        allowed_rules = [tuple(applicable(coalitions, rules)) for coalitions in played]
        reasons: Sequence[Mapping[str, str]] = [{} for _ in played]
        if calls is not None:
            replies = credit_budget.replies(meter)
            plan = credit_budget.plan(played, allowed_rules, calls, replies)
            weights = credit_budget.importance(played, plan.rules, plan.evidences)
            allocation = credit_budget.Allocation(weights, plan.calls, replies.most)
            values.measure(plan.evidences.values(), allocation)
            allowed_rules, reasons = list(plan.rules), plan.reasons
        needed = [
            coalitions.game.evidence(each)
            for coalitions, allowed in zip(played, allowed_rules, strict=True)
            for each in _needed(coalitions, allowed)
        ]
        if calls is not None:
            values.leave(needed, f"the credit budget of {calls} calls does not suffice")
        measured.append(_Measured(values, needed, played, allowed_rules, reasons))
    if ask is not None and calls is None:
        ask([request for each in measured for request in each.values.requests(each.needed)])
    for values, needed, played, allowed_rules, reasons in measured:
        meter = values.meter
        values.measure(needed)
        for coalitions, allowed, missing in zip(played, allowed_rules, reasons, strict=True):
            rows = _over_steps if coalitions.game.step is None else _over_passages
            for step, passage, rule, measurement in (
                *rows(coalitions, allowed),
                *_missing(coalitions, missing),
            ):
                credits.append(
                    Credit(
                        run_id=run.id,
                        step=step,
                        passage=passage,
                        rule=rule,
                        meter=meter.name,
                        measurement=measurement,
                        provenance=provenance,
                    )
                )
            recorded.append(record(coalitions, run.id, provenance))
    return Shares(credits, once(recorded))


def credit_keys(
    question: Question,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    games: Sequence[Game],
) -> set[CreditKey]:
    """The keys of the credits that `appraise` computes, without levels; nothing is measured."""
    keys: set[CreditKey] = set()
    for meter in meters:
        for game in games:
            keys.add((game.step, None, "total" if game.step is None else _WHOLE_STEP, meter.name))
            for rule in applicable(Coalitions(game, EvidenceValues(question, meter)), rules):
                keys |= {(*game.identify(m), rule.name, meter.name) for m in game.members}
    return keys


def applicable(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[CreditRule]:
    """The rules that may share the meter's values of this game."""
    comparable = coalitions.values.comparable or coalitions.key(EMPTY) != NO_EVIDENCE
    return (rule for rule in rules if comparable or rule.name == trajectory.NAME)


def _needed(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterable[Coalition]:
    yield EMPTY
    for rule in rules:
        yield from rule.needs(coalitions.players)
    yield coalitions.full


def _over_steps(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[CreditRow]:
    members, needed = coalitions.game.members, set(_needed(coalitions, rules))
    yield None, None, "level", coalitions.value(EMPTY)
    for step in members:
        if coalitions.upto(step) in needed:
            yield step, None, "level", coalitions.value(coalitions.upto(step))
    for rule in rules:
        for step, measurement in zip(members, rule.share(coalitions), strict=True):
            yield step, None, rule.name, measurement
    yield None, None, "total", coalitions.combine(gain(coalitions.full, EMPTY), "total")


def _missing(coalitions: Coalitions, reasons: Mapping[str, str]) -> Iterable[CreditRow]:
    game = coalitions.game
    for rule, reason in reasons.items():
        for member in game.members:
            step, passage = game.identify(member)
            yield step, passage, rule, Measurement(value=None, reason=reason, estimator=rule)


def _over_passages(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[CreditRow]:
    game = coalitions.game
    for rule in rules:
        for member, measurement in zip(game.members, rule.share(coalitions), strict=True):
            step, passage = game.identify(member)
            yield step, passage, rule.name, measurement
    whole = coalitions.combine(gain(coalitions.full, EMPTY), _WHOLE_STEP)
    yield game.step, None, _WHOLE_STEP, whole
