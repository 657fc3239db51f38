"""Paths from the runs of an experiment, which ended by their workflow's own rule.

What stopping earlier would have given is not in such a run. It is taken to be the short answer from
the evidence of that moment, which the signals come from anyhow, or the belief in the right answer
that was measured there.
"""

import logging
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hopscope.api import parts
from hopscope.lab.budget.paths import Path, Stop, looked, moments, seconds_of
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Credit, Run
from hopscope.store.store import Store
from hopscope.tracing.reports.appraised import shown_credits
from hopscope.tracing.reports.decisions import levels
from hopscope.tracing.signals.draft import draft
from hopscope.tracing.wrappers.cached import CachedReader

_log = logging.getLogger(__name__)

UtilityName = Literal["correctness", "seper"]


class Walked(NamedTuple):
    """A path with the moments on it."""

    path: Path
    moments: tuple[Moment, ...]


def walked(
    run: Run, reader: Reader, utility: UtilityName, credits: Sequence[Credit] = (), kind: str = ""
) -> Walked:
    """The path of a run.

    Raises:
        UsageError: a policy or a limit has cut the run short, or its utility is not known.
        ReaderError: the model failed.
    """
    if any(step.declined for step in run.steps):
        raise UsageError(f"run {run.id[:12]} was cut short by a policy or a limit")
    at = tuple(moments(run))
    shared = CachedReader(reader)
    seen, stops = [], []
    for moment in at:
        seen.append(looked(moment, shared))
        drafted = draft(moment, shared)
        so_far = sum(step.usage.tokens for step in moment.steps)
        stops.append((drafted.text, so_far, seconds_of(moment.steps)))
    if utility == "seper":
        found = levels(credits)
        worth = [found.at(len(moment.steps)) for moment in at] + [found.at(len(run.steps))]
    else:
        texts = [text for text, *_ in stops] + [run.answer or ""]
        worth = [exact_match(text, run.question.answers) for text in texts]
    values = [value for value in worth if value is not None]
    if not run.question.answers or len(values) < len(worth):
        raise UsageError(f"run {run.id[:12]}: its {utility} was not measured")
    costs = [(tokens, seconds) for _, tokens, seconds in stops]
    costs.append((run.usage.tokens, seconds_of(run.steps)))
    return Walked(
        Path(
            question=run.question,
            kind=kind,
            stops=tuple(
                Stop(utility=value, tokens=tokens, seconds=seconds)
                for value, (tokens, seconds) in zip(values, costs, strict=True)
            ),
            known=tuple(each.known for each in seen),
            asked=tuple(each.asked for each in seen),
        ),
        at,
    )


class Walks(NamedTuple):
    """The paths of an arm of an experiment."""

    paths: tuple[Walked, ...]
    reader: Reader
    """The reader of their signals, with a cache of its replies."""
    workflow: str


def of_experiment(db: str | None, experiment: str, arm: str | None, utility: UtilityName) -> Walks:
    """The paths of all answered questions, without those of runs that have none.

    Args:
        arm: its label; None where the experiment has only one.

    Raises:
        UsageError: there is no such experiment or arm, it has no path, or its reader has changed.
        ReaderError: the model failed.
    """
    with Store.open(db, create=False, reading=True) as store:
        plan = store.experiments.find(experiment)
        if plan.settings.get("imported"):
            raise UsageError(
                f"{experiment} holds imported runs, which were not read here: learn from an "
                "experiment of `hopscope eval`"
            )
        arms = {each.label: each.workflow for each in plan.arms}
        arm = arm or (next(iter(arms)) if len(arms) == 1 else None)
        if arm not in arms:
            raise UsageError(f"which workflow of {experiment}? give -w with {', '.join(arms)}")
        outcomes = [
            (item.outcome.run_id, item.entry.kind)
            for item in store.experiments.items(experiment, status="ok")
            if item.arm == arm and item.outcome and item.outcome.status == "ok"
        ]
        _log.info("loading the reader")
        model = parts.reader(str(plan.settings.get("reader", parts.TINY)))
        if model.name != plan.reader:
            raise UsageError(f"{experiment} was read by {plan.reader}, which is now {model.name}")
        reader = CachedReader(model, size=200_000)
        credits = store.experiments.credits(experiment, passages=False)
        found: list[Walked] = []
        left_out: dict[str, str] = {}
        for number, (run_id, kind) in enumerate(outcomes, start=1):
            _log.info(f"signals of question {number} of {len(outcomes)}")
            run = store.load(run_id)
            try:
                known = shown_credits(credits.get(run.id, []))
                found.append(walked(run, reader, utility, known, kind))
            except UsageError as error:
                left_out[run.id] = str(error)
    _log.info("")
    if left_out:
        last = list(left_out.values())[-1]
        _log.warning(f"{len(left_out)} runs are left out, for example: {last}")
    if not found:
        raise UsageError(f"{experiment} has no run of {arm} to learn from")
    return Walks(tuple(found), reader, arms[arm])
