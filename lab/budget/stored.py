"""Paths from the runs of an experiment, which ended by their workflow's own rule.

What stopping earlier would have given is not in such a run. The workflow is ended there again, see
`ends`. If it no longer does what the record says, the short answer from the evidence of that moment
stands in, which the signals come from anyhow. With the utility `seper`, the worth is the belief in
the right answer that was measured there.
"""

import logging
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hopscope.api import parts
from hopscope.lab.budget.ends import End, NotRepeatedError, ends, own_end, own_tokens, seconds_of
from hopscope.lab.budget.paths import Path, Stop, looked, moments
from hopscope.lab.experiments.arms import component
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.ports import Moment, Reader
from hopscope.runtime.prompting.template_files import DEFAULT
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Credit, Run
from hopscope.store.experiments.records import Arm
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
    run: Run,
    reader: Reader,
    utility: UtilityName,
    credits: Sequence[Credit] = (),
    kind: str = "",
    ended: Sequence[End] = (),
    *,
    cached: float = 1.0,
) -> Walked:
    """The path of a run.

    Args:
        ended: its ends after 0, 1, ... retrievals; without them, its drafts stand in.
        cached: what a cached prompt token counts, in `ended`, too.

    Raises:
        UsageError: a policy or a limit has cut the run short, or its utility is not known.
        ReaderError: the model failed.
    """
    refuse_cut(run)
    at = tuple(moments(run))
    shared = CachedReader(reader)
    seen = [looked(moment, shared, cached=cached) for moment in at]
    drafts = (_drafted(moment, shared, cached) for moment in at)
    ended = ended or (*drafts, own_end(run, cached=cached))
    worth: list[float | None]
    if utility == "seper":
        found = levels(credits)
        worth = [found.at(len(moment.steps)) for moment in at] + [found.at(len(run.steps))]
    else:
        worth = [exact_match(end.answer, run.question.answers) for end in ended]
    values = [value for value in worth if value is not None]
    if not run.question.answers or len(values) < len(worth):
        raise UsageError(f"run {run.id[:12]}: its {utility} was not measured")
    return Walked(
        Path(
            question=run.question,
            kind=kind,
            stops=tuple(
                Stop(utility=value, tokens=end.tokens, seconds=end.seconds)
                for value, end in zip(values, ended, strict=True)
            ),
            known=tuple(each.known for each in seen),
            asked=tuple(each.asked for each in seen),
        ),
        at,
    )


def refuse_cut(run: Run) -> None:
    """
    Raises:
        UsageError: a policy or a limit has cut the run short.
    """
    if any(step.declined for step in run.steps):
        raise UsageError(f"run {run.id[:12]} was cut short by a policy or a limit")


def _drafted(moment: Moment, reader: Reader, cached: float) -> End:
    """The draft as an end. What it takes is counted with the signals."""
    steps = moment.steps
    tokens = own_tokens(steps, cached=cached)
    return End(draft(moment, reader).text, tokens, seconds_of(steps))


class Walks(NamedTuple):
    """The paths of an arm of an experiment."""

    paths: tuple[Walked, ...]
    reader: Reader
    """The reader of their signals, with a cache of its replies."""
    workflow: str
    cached: float = 1.0
    """What a cached prompt token counts."""
    prompts: tuple[str, ...] = ()
    """The sets of prompts of their runs."""


def joined(several: Sequence[Walks]) -> Walks:
    """The paths of several experiments of one workflow and reader.

    Raises:
        UsageError: their workflows or readers differ.
    """
    first, *_ = several
    for what, names in (
        ("workflows", {each.workflow for each in several}),
        ("readers", {each.reader.name for each in several}),
    ):
        if len(names) > 1:
            raise UsageError(
                f"the experiments are of the {what} {', '.join(sorted(names))}, and a policy is "
                "for one: give --adapt EXP, a few questions of the one to come"
            )
    return first._replace(
        paths=tuple(path for each in several for path in each.paths),
        prompts=tuple(sorted({name for each in several for name in each.prompts})),
    )


def of_experiment(
    db: str | None,
    experiment: str,
    arm: str | None,
    utility: UtilityName,
    *,
    cached: float = 1.0,
    among: bool = False,
) -> Walks:
    """The paths of all answered questions, without those of runs that have none.

    Args:
        arm: its label; None where the experiment has only one.
        cached: what a cached prompt token counts, from 0 to 1.
        among: it is one of several experiments, so that `arm` is only for those with several arms.

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
        if len(arms) == 1 and (among or arm is None):
            arm = next(iter(arms))
        if arm not in arms:
            question = "which workflow" if arm is None else f"no workflow {arm!r}"
            raise UsageError(f"{question} of {experiment}: give -w with {', '.join(arms)}")
        outcomes = [
            (item.outcome.run_id, item.entry.kind)
            for item in store.experiments.items(experiment, status="ok")
            if item.arm == arm and item.outcome and item.outcome.status == "ok"
        ]
        workflow = _workflow(next(each for each in plan.arms if each.label == arm))
        entailment = (
            None if workflow is None else parts.entailment(str(plan.settings["entailment"]))
        )
        _log.info("loading the reader")
        model = parts.reader(str(plan.settings.get("reader", parts.TINY)))
        if model.name != plan.reader:
            raise UsageError(f"{experiment} was read by {plan.reader}, which is now {model.name}")
        reader = CachedReader(model, size=200_000)
        credits = store.experiments.credits(experiment, passages=False)
        found: list[Walked] = []
        prompts: set[str] = set()
        left_out: dict[str, str] = {}
        drafted: list[str] = []
        for number, (run_id, kind) in enumerate(outcomes, start=1):
            _log.info(f"signals of question {number} of {len(outcomes)}")
            run = store.load(run_id)
            try:
                refuse_cut(run)
                ended: tuple[End, ...] = ()
                if workflow is not None:
                    try:
                        ended = ends(run, workflow, reader, entailment, cached=cached)
                    except NotRepeatedError as error:
                        drafted.append(str(error))
                known = shown_credits(credits.get(run.id, []))
                path = walked(run, reader, utility, known, kind, ended, cached=cached)
                found.append(path)
                prompts.add(run.prompts or DEFAULT)
            except UsageError as error:
                left_out[run.id] = str(error)
    _log.info("")
    if drafted:
        _log.warning(
            f"{counted(len(drafted), 'run')} cannot be ended earlier again: drafts stand in for "
            "the answers; run the experiment again to learn from its own ends. For example: "
            f"{drafted[-1]}"
        )
    if left_out:
        last = list(left_out.values())[-1]
        _log.warning(
            f"{counted(len(left_out), 'run is', 'runs are')} left out, for example: {last}"
        )
    if not found:
        raise UsageError(f"{experiment} has no run of {arm} to learn from")
    return Walks(tuple(found), reader, arms[arm], cached, tuple(sorted(prompts)))


def _workflow(arm: Arm) -> Workflow | None:
    """The workflow of an arm; None if it cannot be built again, such as a graph in memory."""
    options = arm.settings["options"]
    try:
        return parts.rebuilt(component(arm), options if isinstance(options, dict) else {})
    except UsageError:
        return None
