"""A run's decisions with their realised gains.

The gain of a retrieval follows from the run's credits: the belief in the right answer at the end
minus the belief at the decision. A decision to stop has no realised gain.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hopscope.runtime.execution.step import LIMIT
from hopscope.runtime.types import Credit, Decision, Record, Run

NOT_RUN = "going on was not tried"
NO_BELIEF = "SePer was not measured: measure it with `hopscope credit --gold ANSWER`"


class DecisionOutcome(Record):
    """One decision with its outcome."""

    step: int
    """Index of the step with the decision."""
    decision: Decision
    gain: float | None
    """Realised: SePer at the end of the run minus SePer at the decision."""
    reason: str | None = None
    """Why there is no gain."""
    tokens: int
    """Tokens from the decision to the end of the run, the decision's own included."""
    regret: float | None
    """The advantage that stopping here would have had, at the decision's price; 0 if retrieving
    was right."""
    sentence: str
    """Why a search was made or not, in plain English."""


class Levels(NamedTuple):
    """SePer by step; the key None is no evidence."""

    by_step: dict[int | None, float]

    def at(self, step: int) -> float | None:
        """SePer before the step with this index."""
        known = [s for s in self.by_step if s is not None and s < step]
        return self.by_step.get(max(known, default=None))


def levels(credits: Iterable[Credit]) -> Levels:
    """From the credits of one appraisal; unmeasured steps are left out."""
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


def explain(run: Run, credits: Iterable[Credit]) -> list[DecisionOutcome]:
    """The decisions of a run in order, with credits of one appraisal."""
    known = levels(credits)
    outcomes = []
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
        outcomes.append(
            DecisionOutcome(
                step=step.index,
                decision=step.decision,
                gain=gain,
                reason=reason,
                tokens=tokens,
                sentence=sentence(step.decision),
                regret=None if gain is None else max(0.0, price * tokens - gain),
            )
        )
    return outcomes


def sentence(decided: Decision) -> str:
    """Why a search was made or not, in plain English."""
    act = "It searched" if decided.retrieve else "It did not search"
    if decided.policy.startswith(LIMIT):
        return f"{act}, because a limit of the run was reached: {decided.reason}."
    if decided.gain is None or decided.cost is None or decided.price is None:
        return f"{act}, because {decided.reason}."
    worth = "more" if decided.retrieve else "no more"
    return (
        f"{act}, because going on was expected to gain {max(0.0, decided.gain):.2f} of a right "
        f"answer, {worth} than the {decided.price * decided.cost:.2f} that {decided.cost:.0f} "
        "tokens must bring."
    )
