"""A run's decisions, and what became of them as far as the run can tell.

What going on has brought is known from the credits of the run: the belief in the right answer at
its end minus that at the decision. What it would have brought is not: a refusal has no realised
gain.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hopscope.runtime.types import Credit, Decision, Record, Run

NOT_RUN = "going on was not tried"
NO_BELIEF = "SePer was not measured: measure it with `hopscope credit --gold ANSWER`"


class Explained(Record):
    """One decision."""

    step: int
    """Index of the step that it stands in."""
    decision: Decision
    gain: float | None
    """Realised: SePer at the end of the run minus SePer here."""
    reason: str | None = None
    """Why there is no gain."""
    tokens: int
    """Spent from here to the end, deciding included."""
    regret: float | None
    """By how much stopping here would have been better, at the decision's price; 0 where going on
    was right."""


class Levels(NamedTuple):
    """SePer by step, None for no evidence."""

    by_step: dict[int | None, float]

    def at(self, step: int) -> float | None:
        """What holds before a step of this index."""
        known = [s for s in self.by_step if s is not None and s < step]
        return self.by_step.get(max(known, default=None))


def levels(credits: Iterable[Credit]) -> Levels:
    """From the credits of one appraisal; steps that were not measured are not there."""
    return Levels(
        {
            credit.step: credit.measurement.value
            for credit in credits
            if credit.meter == "seper"
            and credit.rule == "level"
            and credit.passage is None
            and credit.measurement.value is not None
        }
    )


def explain(run: Run, credits: Iterable[Credit]) -> list[Explained]:
    """The decisions of a run in order, with credits of one appraisal."""
    known = levels(credits)
    found = []
    for step in run.steps:
        if step.decision is None:
            continue
        before, after = known.at(step.index), known.at(len(run.steps))
        gain = None if before is None or after is None else after - before
        reason = NO_BELIEF if gain is None else None
        if not step.decision.retrieve:
            gain, reason = None, NOT_RUN
        tokens = sum(s.usage.tokens for s in run.steps[step.index :])
        price = step.decision.price or 0.0
        found.append(
            Explained(
                step=step.index,
                decision=step.decision,
                gain=gain,
                reason=reason,
                tokens=tokens,
                regret=None if gain is None else max(0.0, price * tokens - gain),
            )
        )
    return found
