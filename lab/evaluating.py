"""A whole dataset by one or more workflows, from Python: `hopscope eval` with a session's parts.

If all parts are named, the experiment equals that of the command, and either resumes the other's.
The settings contain the names of parts in memory, which cannot rebuild them.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal

from hopscope.api import given
from hopscope.api.appraiser import split
from hopscope.api.given import WorkflowPart
from hopscope.api.measured_run import MeasuredRun
from hopscope.api.session import Session
from hopscope.api.views.frames import frame
from hopscope.lab.comparison import Comparison, compare
from hopscope.lab.dataset import dataset
from hopscope.lab.dataset.dataset import Dataset
from hopscope.lab.dataset.ordering import Order
from hopscope.lab.experiments import concurrency, execution, item_runner, planning
from hopscope.lab.experiments.arms import arms, of_workflow, pinned
from hopscope.lab.experiments.concurrency import Concurrency, Situation
from hopscope.lab.experiments.execution import AT_A_TIME
from hopscope.lab.experiments.experiment import ExperimentSettings
from hopscope.lab.experiments.in_process import InProcessExecutor
from hopscope.lab.experiments.item_runner import ItemRunner
from hopscope.lab.experiments.planning import ExperimentPlan
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime import code_files, entry_points
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Question
from hopscope.store.experiments.appraisals import ORIGINAL
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Progress
from hopscope.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

IN_MEMORY = "questions in memory"
"""The name of the file in an experiment with questions in memory."""


@dataclass(frozen=True)
class Experiment:
    """The results of an experiment. A notebook shows its means."""

    name: str
    store: Store
    """The session's store, open as long as the session."""

    @property
    def progress(self) -> Progress:
        """The numbers of items by status."""
        return self.store.experiments.progress(self.name)

    def runs(self) -> Iterator[MeasuredRun]:
        """The finished runs, question by question, each loaded at its iteration."""
        for item in self.store.experiments.items(self.name):
            if item.outcome is not None:
                id = item.outcome.run_id
                credits, appraisals = self.store.credits(id), self.store.appraisals(id)
                yield MeasuredRun(self.store.load(id), credits, appraisals)

    def compare(self, *others: str, tables: Sequence[str] = ("overview",)) -> Comparison:
        """Tables over this experiment and others of the same database; `hopscope.compare` has more
        to choose from.

        Raises:
            UsageError: there is no such experiment or table, or nothing is done yet.
        """
        return compare(self.name, *others, store=self.store, tables=tables)

    def show(self) -> None:
        """Print the means, as `hopscope compare -t overview` does."""
        self.compare().show()

    def to_dicts(self) -> list[dict[str, Any]]:
        """One row for each question and workflow: the question, its result, and the total by each
        meter, None if unmeasured."""
        credits = self.store.experiments.credits(
            self.name, rules=["total"], passages=False, appraisal=ORIGINAL
        )
        rows = []
        for item in self.store.experiments.items(self.name):
            outcome = item.outcome
            row: dict[str, Any] = {
                "id": item.question.id,
                "question": item.question.text,
                "gold": list(item.question.answers),
                "workflow": item.arm,
                "status": item.status,
                "answer": outcome.answer if outcome else None,
                "error": item.error.message if item.error else None,
                "run": outcome.run_id if outcome else None,
                "retrievals": outcome.retrievals if outcome else None,
                "tokens": outcome.usage.tokens if outcome else None,
                "seconds": outcome.seconds if outcome else None,
            }
            for credit in credits.get(outcome.run_id, ()) if outcome else ():
                row[f"{credit.meter}_total"] = credit.measurement.value
            rows.append(row)
        return rows

    def to_frame(self) -> "pd.DataFrame":
        """The rows of `to_dicts` as a data frame of pandas.

        Raises:
            UsageError: pandas is not installed.
        """
        rows = self.to_dicts()
        return frame(rows, list(dict.fromkeys(key for row in rows for key in row)))

    def _repr_html_(self) -> str:
        return self.compare()._repr_html_()


def evaluate(
    session: Session,
    data: str | Path | Iterable[Question],
    *,
    workflows: Sequence[WorkflowPart] | None = None,
    name: str | None = None,
    options: Mapping[str, object] | None = None,
    k: int | None = None,
    limit: int | None = None,
    order: Order = "stratified",
    threads: int | Literal["auto"] = "auto",
    retry_failed: bool = False,
) -> Experiment:
    """Answer and measure all questions by each workflow, and store them as an experiment. Finished
    items are kept: the same call resumes.

    It works in this process, with the parts of the session. `hopscope eval` has processes, clusters
    and estimates of the cost.

    Args:
        data: a file, `hopland:dev`, `hopland:test`, or questions.
        workflows: by default the session's; a text may hold options, as in `ircot:k=3`.
        name: of the experiment; by default that of the data. Questions in memory need one.
        options: as of the session, and before those.
        k: passages per retrieval.
        limit: answers only this many, the first by `order`; a larger limit later adds questions.
        threads: questions at a time; their requests to the reader are batched. `auto` is 16 to 64
            with a local model, fewer if questions or memory are few, and 1 with parts in memory.
        retry_failed: repeats failed items.

    Raises:
        UsageError: an argument cannot be used, or an experiment of this name has other settings.
        CorpusError: the data are malformed.
        KeyboardInterrupt: Ctrl-C; the questions in progress were finished and stored.
    """
    return _evaluate(
        session,
        data,
        workflows=workflows,
        name=name,
        options=options,
        k=k,
        limit=limit,
        order=order,
        threads=threads,
        retry_failed=retry_failed,
    )


async def evaluate_async(
    session: Session,
    data: str | Path | Iterable[Question],
    *,
    workflows: Sequence[WorkflowPart] | None = None,
    name: str | None = None,
    options: Mapping[str, object] | None = None,
    k: int | None = None,
    limit: int | None = None,
    order: Order = "stratified",
    threads: int | Literal["auto"] = "auto",
    retry_failed: bool = False,
) -> Experiment:
    """`evaluate` in a thread, which leaves the event loop free. When cancelled, it returns
    at once; its thread finishes and stores the questions in progress."""
    cancelled = Event()
    try:
        return await asyncio.to_thread(
            _evaluate,
            session,
            data,
            workflows=workflows,
            name=name,
            options=options,
            k=k,
            limit=limit,
            order=order,
            threads=threads,
            retry_failed=retry_failed,
            cancelled=cancelled,
        )
    except asyncio.CancelledError:
        cancelled.set()
        raise


def _evaluate(
    session: Session,
    data: str | Path | Iterable[Question],
    *,
    workflows: Sequence[WorkflowPart] | None,
    name: str | None,
    options: Mapping[str, object] | None,
    k: int | None,
    limit: int | None,
    order: Order,
    threads: int | Literal["auto"],
    retry_failed: bool,
    cancelled: Event | None = None,
) -> Experiment:
    given_threads = None if threads == "auto" else threads
    for option, number in (("limit", limit), ("threads", given_threads)):
        if number is not None and number < 1:
            raise UsageError(f"{option}: give a number of at least 1, not {number}")
    if isinstance(workflows, str):
        workflows = [workflows]
    if workflows is not None and not workflows:
        raise UsageError("workflows: name at least one")
    with session.turn:
        found = _dataset(data, name)
        name, store = found.name if name is None else name, session.store
        texts, of_meters = split({**session.options, **given.texts(options)})
        of_meters = {**session.presets.of_meters(session.meters), **of_meters}
        planned, live = _arms(session, workflows, texts, k)
        settings = _settings(session, data, found, of_meters, limit=limit, order=order)
        plan = planning.plan(name, settings, planned, found)

        def start() -> InProcessExecutor:
            if given_threads is None:
                at_once = concurrency.chosen(session.reader, _situation(session, plan, live))
            else:
                at_once = Concurrency(given_threads, "threads=")
            return InProcessExecutor(
                lambda: _bench(session, plan, live, at_once), threads=at_once.threads
            )

        def report(claimed: ClaimedItem, done: ItemResult) -> None:
            now = store.experiments.progress(name)
            _log.info(f"{now.done} of {now.total} are done")

        with execution.loaded(store, plan, start) as loaded:
            stopped = execution.work(
                store,
                plan,
                loaded,
                retry_failed=retry_failed,
                watching=lambda: nullcontext(report),
                described={AT_A_TIME: loaded.at_once.threads},
                cancelled=cancelled,
            )
    result = Experiment(name, store)
    if stopped:
        now = result.progress
        raise KeyboardInterrupt(
            f"{now.done} of {now.total} are done and kept; the same call resumes"
        )
    return result


def _dataset(data: str | Path | Iterable[Question], name: str | None) -> Dataset:
    if isinstance(data, str | Path):
        return dataset.load(str(data))
    if name is None:
        raise UsageError("name: questions in memory make an experiment that needs a name")
    questions = tuple(data)
    for number, question in enumerate(questions, start=1):
        if not isinstance(question, Question):
            raise UsageError(
                f"data: entry {number} is of type {type(question).__name__}: give records, such as "
                'hopscope.Question(text="Who?", answers=("Ada",))'
            )
    entries = tuple(DatasetEntry(question=question) for question in questions)
    if not entries:
        raise UsageError("data: there is no question in it")
    for of in ("id", "text"):
        values = [value for entry in entries if (value := getattr(entry.question, of))]
        if of == "text" and any(entry.question.id for entry in entries):
            continue  # ids distinguish equal texts
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise UsageError(f"data: two questions have the {of} {twice!r}; drop one")
    return Dataset(name=name, form="memory", entries=entries)


def _settings(
    session: Session,
    data: str | Path | Iterable[Question],
    found: Dataset,
    options: dict[str, str],
    *,
    limit: int | None,
    order: Order,
) -> ExperimentSettings:
    named = session.parts
    corpus, reader, judge = named.named_retriever, named.named_reader, named.named_entailment
    return ExperimentSettings(
        data=dataset.location(data) if isinstance(data, str | Path) else IN_MEMORY,
        form=found.form,
        digest=found.digest,
        order=order,
        limit=limit,
        corpus=corpus if isinstance(corpus, str) else session.retriever.name,
        reader=reader if isinstance(reader, str) else session.reader.name,
        entailment=judge if isinstance(judge, str) else session.entailment.name,
        seed=session.seed,
        samples=session.samples,
        meters=session.meters,
        rules=session.rules,
        options=options,
    )


def _arms(
    session: Session,
    workflows: Sequence[WorkflowPart] | None,
    options: dict[str, str],
    k: int | None,
) -> tuple[tuple[Arm, ...], dict[str, Workflow]]:
    """The arms, those in memory last, and the workflows of these by label."""
    if not isinstance(session.policy, str):
        raise UsageError("policy: an experiment keeps its name; give a name, not an object")
    wanted = [session.workflow] if workflows is None else list(workflows)
    texts = [part for part in wanted if isinstance(part, str)]
    prompts = session.presets.of_workflow("")
    live = [given.workflow(part, prompts) for part in wanted if not isinstance(part, str)]
    corpus = session.parts.named_retriever
    named = arms(
        texts,
        options,
        presets=session.presets,
        corpus=corpus if isinstance(corpus, str) else None,
        k=k,
        spend=session.spending,
    )
    session.presets.check(meters=session.meters, workflows=[arm.workflow for arm in named])
    labels = [arm.label for arm in named] + [workflow.name for workflow in live]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"workflows: {label} is given twice")
    others = tuple(of_workflow(workflow, session.spending) for workflow in live)
    return (*named, *others), {workflow.name: workflow for workflow in live}


def _situation(session: Session, plan: ExperimentPlan, live: Mapping[str, Workflow]) -> Situation:
    named = session.parts
    others = [named.named_retriever, named.named_entailment, *(arm.workflow for arm in plan.arms)]
    reader = named.named_reader
    told = (*others, session.policy, *session.meters)
    texts = " ".join(part for part in told if isinstance(part, str))
    return Situation(
        reader=Spec.parse(reader) if isinstance(reader, str) else None,
        foreign=bool(live)
        or not all(isinstance(part, str) for part in others)
        or code_files.ENDING in texts
        or entry_points.occur(texts),
        served=any(service in texts for service in concurrency.SERVICES),
        timed=any(pinned(arm).limits.seconds is not None for arm in plan.arms),
        questions=len(plan.entries) * len(plan.arms),
    )


@contextmanager
def _bench(
    session: Session, plan: ExperimentPlan, live: dict[str, Workflow], at_once: Concurrency
) -> Iterator[ItemRunner]:
    from hopscope.tracing.spans.telemetry import captures_content, telemetry

    named = session.parts.named_reader
    with (
        item_runner.shared(
            session.reader,
            at_once.threads,
            named=Spec.parse(named) if isinstance(named, str) else None,
        ) as reader,
        telemetry(session.trace_file),
    ):
        own = reader is session.reader
        deps = Deps(
            reader=reader,
            retriever=session.retriever if own else session.parts.retriever_for(reader),
            entailment=session.entailment,
            seed=session.seed,
            capture_content=session.trace_content and captures_content(),
        )
        measuring = item_runner.measuring(plan.settings)
        made = ItemRunner(
            plan.name, deps, reader, session.entailment, measuring, live, at_once=at_once
        )
        for arm in plan.arms:
            made.system(arm)  # reports errors before the first question
        yield made
