"""What every step of a finished run was worth, by every meter and rule: the credits to store.

Credits come from the run's record alone; the workflow is not run again.
"""

from collections.abc import Iterator, Sequence

from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.types import Credit, Measurement, Provenance, Run
from hopscope.tracing.coalitions import EMPTY, Coalitions
from hopscope.tracing.credit import trajectory
from hopscope.tracing.credit._rule import CreditRule, gain

MIXED = " (mixes the key rules with and without documents)"
"""GroGU's confidence without documents follows another rule, appendix C.1: flagged where the
difference to it does not cancel."""


def appraise(
    run: Run,
    meters: Sequence[UtilityMeter],
    rules: Sequence[CreditRule],
    provenance: Provenance,
) -> list[Credit]:
    """Credits of all steps.

    For each meter: `level` of step None, the value without evidence; for each step `level`, the
    value of all evidence up to it, and one credit by each rule, named after the rule; and
    `total` of step None, the value of all evidence minus that of none. Each meter is asked once,
    about all evidence sets together.

    A meter that says `comparable_baseline` is False (GroGU with key tokens) gets the trajectory
    rule only, because the others weigh its value without evidence in.

    Raises:
        ReaderError, EntailmentError: a model failed.
    """
    credits: list[Credit] = []
    for meter in meters:
        coalitions = Coalitions(run, meter)
        for step, rule, measurement in _measured(coalitions, rules):
            credits.append(
                Credit(
                    run_id=run.id,
                    step=step,
                    rule=rule,
                    meter=meter.name,
                    measurement=measurement,
                    provenance=provenance,
                )
            )
    return credits


def _measured(
    coalitions: Coalitions, rules: Sequence[CreditRule]
) -> Iterator[tuple[int | None, str, Measurement]]:
    comparable = getattr(coalitions.meter, "comparable_baseline", True)
    if not comparable:
        rules = [rule for rule in rules if rule.name == trajectory.NAME]
    players = coalitions.players
    coalitions.measure(
        [
            EMPTY,
            *(coalitions.upto(player) for player in players),
            *(needed for rule in rules for needed in rule.needs(players)),
        ]
    )
    yield None, "level", coalitions.value(EMPTY)
    for step in coalitions.run.steps:
        yield step.index, "level", coalitions.value(coalitions.upto(step.index))
    for rule in rules:
        for step, measurement in zip(coalitions.run.steps, rule.share(coalitions), strict=True):
            mixed = not comparable and players[:1] == (step.index,)
            yield step.index, rule.name, _flagged(measurement, mixed)
    total = coalitions.combine(gain(coalitions.full, EMPTY), "total")
    yield None, "total", _flagged(total, not comparable and bool(players))


def _flagged(measurement: Measurement, mixed: bool) -> Measurement:
    if not mixed:
        return measurement
    return measurement.model_copy(update={"estimator": measurement.estimator + MIXED})
