"""The rewards of a run's turns: what each search changed in the belief in the gold answer.

A turn is a search: a step that sent queries, with all steps up to the next search. Its difference
is its share of the gain by a credit rule; its level is the belief after it. Levels start at the
closed-book belief. The outcome is the belief after the last turn minus the closed-book belief.

Invariant: by `trajectory` and by `shapley` the differences sum to the outcome, and the levels rise
from the closed-book belief to it by the differences, to 1e-9. By `leave_one_out` they do not sum to
it: there are no levels then, and `rest` is what is left. A reward that was not measured is None
with a reason, never 0.

Levels are a potential, so that differences shape the reward without changing the best policy (Ng,
Harada and Russell 1999). IGPO (arXiv 2510.14967) and TRACE (arXiv 2607.13988) use differences of
the probability and of the log-probability of the gold answer.
"""

from collections.abc import Iterable, Sequence, Set
from enum import StrEnum
from itertools import accumulate
from math import fsum
from typing import NamedTuple

from hopscope.runtime.types import Credit, Measurement, Provenance, Record, Run, Step
from hopscope.tracing import proxies

LEVEL, TOTAL = "level", "total"


class Rule(StrEnum):
    """The credit rules that give turn rewards."""

    trajectory = "trajectory"
    shapley = "shapley"
    leave_one_out = "leave_one_out"

    @property
    def telescopes(self) -> bool:
        """Whether the differences sum to the outcome."""
        return self is not Rule.leave_one_out


class TurnReward(Record):
    """The reward of one search."""

    step: int
    """Index of the step that searched."""
    query: str
    """Its queries, one a line."""
    difference: Measurement
    """Its share of the gain."""
    level: Measurement
    """The belief after it; by `shapley` the closed-book belief plus the shares so far."""


class TurnRewards(Record):
    """The rewards of one run."""

    run: str
    """The run's id."""
    question: str
    question_id: str
    """The dataset's id, or empty."""
    answer: str | None
    """The run's answer; None without one. The policy took a turn to write it."""
    meter: str
    rule: Rule
    provenance: Provenance | None
    """The reader that measured, with the settings; None if nothing was measured."""
    ran: str = ""
    """The reader that ran; empty if unknown."""
    start: Measurement
    """The closed-book belief."""
    turns: tuple[TurnReward, ...]
    """In the order of the run."""
    outcome: Measurement
    """The belief with all evidence minus the closed-book belief."""

    @property
    def proxy(self) -> bool | None:
        """Whether another reader measured than ran; None if it is unknown which ran, or nothing was
        measured."""
        if self.provenance is None:
            return None
        return proxies.is_proxy(self.ran, self.provenance.reader)

    @property
    def differences(self) -> list[float | None]:
        """One value for each turn."""
        return [turn.difference.value for turn in self.turns]

    @property
    def levels(self) -> list[float | None]:
        """The closed-book belief and the belief after each turn: one value more than turns."""
        return [self.start.value, *(turn.level.value for turn in self.turns)]

    @property
    def reward(self) -> float | None:
        """The value of the outcome."""
        return self.outcome.value

    @property
    def rest(self) -> float | None:
        """The outcome minus the sum of the differences: rounding, unless the rule is
        `leave_one_out`. None if one of them is."""
        shares = [share for share in self.differences if share is not None]
        if self.reward is None or len(shares) < len(self.turns):
            return None
        return self.reward - sum(shares)

    @property
    def reason(self) -> str | None:
        """Why the first missing value is missing; None if all were measured."""
        measured = (self.outcome, self.start, *(turn.difference for turn in self.turns))
        return next((each.reason for each in measured if each.value is None), None)


def of_credits(
    run: Run, credits: Iterable[Credit], *, meter: str, rule: Rule
) -> TurnRewards | None:
    """The rewards of a run from its credits: those of the latest measurement by this meter and
    rule, with nothing in the place of an absent step and without running the workflow again.

    Args:
        credits: in the order of measurement, as the store returns them.

    Returns:
        None if there is no such measurement.
    """
    turns = _turns(run.steps)
    wanted = {LEVEL, TOTAL, rule} if turns else {LEVEL, TOTAL}
    found = _latest([credit for credit in credits if credit.meter == meter], wanted)
    if not found:
        return None
    measured = {(c.rule, c.step): c.measurement for c in found}
    start, outcome = measured[LEVEL, None], measured[TOTAL, None]
    differences = [
        _sum([measured[rule, step.index] for step in turn.steps if (rule, step.index) in measured])
        for turn in turns
    ]
    levels = _levels(turns, differences, measured, rule)
    provenance = found[0].provenance
    return _rewards(run, meter, rule, provenance, start, turns, differences, levels, outcome)


def unmeasured(run: Run, reason: str, *, meter: str, rule: Rule) -> TurnRewards:
    """The rewards of a run that was not measured."""
    missing = Measurement(value=None, reason=reason)
    turns = _turns(run.steps)
    each = [missing] * len(turns)
    return _rewards(run, meter, rule, None, missing, turns, each, each, missing)


class _Turn(NamedTuple):
    steps: tuple[Step, ...]
    """The search, and all up to the next one. Those before the first search belong to it, too."""
    search: Step


Measured = dict[tuple[str, int | None], Measurement]
"""Credits of steps by rule and step."""


def _turns(steps: Sequence[Step]) -> list[_Turn]:
    places = [place for place, step in enumerate(steps) if step.query is not None]
    begins, ends = [0, *places[1:]], [*places[1:], len(steps)]
    return [
        _Turn(tuple(steps[begin:end]), steps[place])
        for place, begin, end in zip(places, begins, ends, strict=False)
    ]


def _latest(credits: Sequence[Credit], wanted: Set[str]) -> list[Credit]:
    """The credits of steps of the latest measurement with these rules, if possible of one that
    measured the outcome, which a small credit budget does not; none without one."""
    measurements: dict[str, list[Credit]] = {}
    for credit in credits:
        if credit.passage is None and _plain(credit.provenance):
            measurements.setdefault(credit.provenance.settings_hash, []).append(credit)
    found = [
        each
        for each in reversed(measurements.values())
        if wanted <= {credit.rule for credit in each}
    ]
    return next(filter(_has_outcome, found), next(iter(found), []))


def _has_outcome(credits: Iterable[Credit]) -> bool:
    return any(c.measurement.value is not None for c in credits if c.rule == TOTAL)


def _plain(provenance: Provenance) -> bool:
    """Whether absent steps leave nothing in their place and the workflow did not run again."""
    settings = provenance.settings
    return (
        settings.get("counterfactual", "empty") == "empty"
        and settings.get("mode", "frozen") == "frozen"
    )


def _sum(shares: Sequence[Measurement]) -> Measurement:
    """The share of a turn. Of its steps mostly one has brought something."""
    missing = next((share for share in shares if share.value is None), None)
    if missing is not None:
        return missing
    bringing = [share for share in shares if share.value or share.n]
    if len(bringing) < 2:
        return next(iter([*bringing, *shares]))
    return Measurement(
        value=fsum(share.value or 0.0 for share in bringing),
        n=min(share.n for share in bringing),
        seed=bringing[0].seed,
        estimator=f"sum of {len(bringing)} steps, {bringing[0].estimator}",
    )


def _levels(
    turns: Sequence[_Turn], shares: Sequence[Measurement], measured: Measured, rule: Rule
) -> list[Measurement]:
    start = measured[LEVEL, None]
    if not rule.telescopes:
        reason = f"shares by {rule} do not sum to the outcome, so there are no levels"
        return [Measurement(value=None, reason=reason)] * len(turns)
    sums = accumulate(shares, _added, initial=start)
    next(sums)
    ends = [(LEVEL, turn.steps[-1].index) for turn in turns]
    if rule is Rule.trajectory and all(end in measured for end in ends):
        return [measured[end] for end in ends]
    return list(sums)


def _added(level: Measurement, share: Measurement) -> Measurement:
    missing = next((each for each in (level, share) if each.value is None), None)
    if missing is not None:
        return missing
    return Measurement(
        value=(level.value or 0.0) + (share.value or 0.0),
        n=min(level.n, share.n) or max(level.n, share.n),
        seed=level.seed,
        estimator="closed-book belief plus shares",
    )


def _rewards(
    run: Run,
    meter: str,
    rule: Rule,
    provenance: Provenance | None,
    start: Measurement,
    turns: Sequence[_Turn],
    differences: Sequence[Measurement],
    levels: Sequence[Measurement],
    outcome: Measurement,
) -> TurnRewards:
    return TurnRewards(
        run=run.id,
        question=run.question.text,
        question_id=run.question.id,
        answer=run.answer,
        meter=meter,
        rule=rule,
        provenance=provenance,
        ran=run.reader,
        start=start,
        turns=tuple(
            TurnReward(
                step=turn.search.index,
                query=turn.search.query or "",
                difference=difference,
                level=level,
            )
            for turn, difference, level in zip(turns, differences, levels, strict=True)
        ),
        outcome=outcome,
    )
