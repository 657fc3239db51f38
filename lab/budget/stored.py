"""Paths from the runs of an experiment, which ended by their workflow's own rule.

What stopping earlier would have given is not in such a run. It is taken to be the short answer from
the evidence of that moment, which the signals come from anyhow, or the belief in the right answer
that was measured there.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from hopscope.lab.budget.paths import Path, Stop, looked, moments
from hopscope.runtime.answers import exact_match
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.types import Credit, Run
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.decisions import levels
from hopscope.tracing.draft import draft

Utility = Literal["correctness", "seper"]


class Walked(NamedTuple):
    """A path with the moments on it."""

    path: Path
    moments: tuple[Moment, ...]


def walked(
    run: Run, reader: Reader, utility: Utility, credits: Sequence[Credit] = (), kind: str = ""
) -> Walked:
    """The path of a run.

    Raises:
        UsageError: a policy or a limit has cut the run short, or its utility is not known.
        ReaderError: the model failed.
    """
    if any(step.decision and not step.decision.retrieve for step in run.steps):
        raise UsageError(f"run {run.id[:12]} was cut short by a policy or a limit")
    at = tuple(moments(run))
    shared = CachedReader(reader)
    seen, stops = [], []
    for moment in at:
        seen.append(looked(moment, shared))
        drafted = draft(moment, shared)
        so_far = sum(step.usage.tokens for step in moment.steps)
        stops.append((drafted.text, so_far))
    if utility == "seper":
        found = levels(credits)
        worth = [found.at(len(moment.steps)) for moment in at] + [found.at(len(run.steps))]
    else:
        texts = [text for text, _ in stops] + [run.answer or ""]
        worth = [exact_match(text, run.question.answers) for text in texts]
    values = [value for value in worth if value is not None]
    if not run.question.answers or len(values) < len(worth):
        raise UsageError(f"run {run.id[:12]}: its {utility} was not measured")
    costs = [tokens for _, tokens in stops] + [run.usage.tokens]
    return Walked(
        Path(
            question=run.question,
            kind=kind,
            stops=tuple(
                Stop(utility=value, tokens=tokens)
                for value, tokens in zip(values, costs, strict=True)
            ),
            known=tuple(each.known for each in seen),
            asked=tuple(each.asked for each in seen),
        ),
        at,
    )
