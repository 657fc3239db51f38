"""What every step of a finished run was worth, or every passage of a step, by every meter and
rule: the credits to store.

Credits come from the run's record alone; only a game that replays (see `replay`) runs the workflow
again.
"""

from collections.abc import Iterable, Iterator, Sequence

from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import Credit, Measurement, Provenance, Question, Run
from hopscope.tracing.coalitions import EMPTY, Coalition, Coalitions, Game, Values
from hopscope.tracing.credit import leave_one_out, trajectory
from hopscope.tracing.credit._rule import CreditRule, gain
from hopscope.tracing.games import over_steps

Found = tuple[int | None, str | None, str, Measurement]
"""Step, passage, rule and value."""
Share = tuple[int | None, str | None, str, str]
"""Step, passage, rule and meter."""

_WHOLE_STEP = leave_one_out.NAME
"""What the passages of a step share."""


def appraise(
    run: Run,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    provenance: Provenance,
    *,
    games: Sequence[Game] | None = None,
) -> list[Credit]:
    """Credits of all steps, or of what else plays in the `games`.

    For each meter and a game over steps: `level` of step None, the value without evidence; for
    each step `level`, the value of all evidence up to it, where a rule needed that (`trajectory`
    needs all); one credit by each rule, named after the rule; and `total` of step None, the value
    of all evidence minus that of none. For a game over the passages of a step: one credit by each
    rule for each passage, and the step's own `leave_one_out`, which is what they share. Each meter
    is asked once, about all evidence sets together.

    A meter that says `comparable_baseline` is False (GroGU with key tokens) gets the trajectory
    rule only in a game where nobody means no evidence, because the other rules weigh that value in.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    credits: list[Credit] = []
    if games is None:
        games = [over_steps(run)]
    for meter in meters:
        values = Values(run.question, meter)
        played = [Coalitions(game, values) for game in games]
        fitting = [list(_fitting(coalitions, rules)) for coalitions in played]
        values.measure(
            coalitions.game.evidence(needed)
            for coalitions, allowed in zip(played, fitting, strict=True)
            for needed in _needed(coalitions, allowed)
        )
        for coalitions, allowed in zip(played, fitting, strict=True):
            shared = _over_steps if coalitions.game.step is None else _over_passages
            for step, passage, rule, measurement in shared(coalitions, allowed):
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
    return credits


def shares(
    question: Question,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    games: Sequence[Game],
) -> set[Share]:
    """The credits that `appraise` makes besides levels, without measuring any of them."""
    found: set[Share] = set()
    for meter in meters:
        for game in games:
            found.add((game.step, None, "total" if game.step is None else _WHOLE_STEP, meter.name))
            for rule in _fitting(Coalitions(game, Values(question, meter)), rules):
                found |= {(*game.whom(m), rule.name, meter.name) for m in game.members}
    return found


def _fitting(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[CreditRule]:
    comparable = coalitions.values.comparable or coalitions.game.evidence(EMPTY) != ()
    return (rule for rule in rules if comparable or rule.name == trajectory.NAME)


def _needed(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterable[Coalition]:
    yield EMPTY
    for rule in rules:
        yield from rule.needs(coalitions.players)
    yield coalitions.full


def _over_steps(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[Found]:
    members, needed = coalitions.game.members, set(_needed(coalitions, rules))
    yield None, None, "level", coalitions.value(EMPTY)
    for step in members:
        if coalitions.upto(step) in needed:
            yield step, None, "level", coalitions.value(coalitions.upto(step))
    for rule in rules:
        for step, measurement in zip(members, rule.share(coalitions), strict=True):
            yield step, None, rule.name, measurement
    yield None, None, "total", coalitions.combine(gain(coalitions.full, EMPTY), "total")


def _over_passages(coalitions: Coalitions, rules: Sequence[CreditRule]) -> Iterator[Found]:
    game = coalitions.game
    for rule in rules:
        for member, measurement in zip(game.members, rule.share(coalitions), strict=True):
            step, passage = game.whom(member)
            yield step, passage, rule.name, measurement
    whole = coalitions.combine(gain(coalitions.full, EMPTY), _WHOLE_STEP)
    yield game.step, None, _WHOLE_STEP, whole
