"""Collects from the store what a service is sent: traces, notes, experiments."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from hopscope.api.sharing.service import Example, HoldsTraces, Note, Plan, Result
from hopscope.runtime.spans import content
from hopscope.runtime.types import Credit, Measurement, Run
from hopscope.store.experiments.records import Experiment, Item
from hopscope.store.exporters.otlp import Trace, relocated, trace
from hopscope.store.store import Store
from hopscope.tracing.reports.appraised import shown_credits
from hopscope.tracing.scoring.metric import AnswerMetric, case_of
from hopscope.tracing.spans.evaluators import title

TOLD = {"n", "seed", "estimator", "low", "high"}
"""What a note tells of a measurement besides its value."""
HIDDEN = "not measured"
"""Stands for a reason where texts are not sent, because it may quote a model's input."""


class Told(NamedTuple):
    """A run as a service is told of it."""

    trace: Trace
    notes: list[Note]
    there: bool = False
    """Whether the service has its trace from when it ran."""

    @property
    def run(self) -> Run:
        return self.trace.run

    @property
    def of_run(self) -> tuple[Note, ...]:
        """The notes on the whole run."""
        return tuple(note for note in self.notes if note.whole)


def located(made: Trace, service: object) -> Trace | None:
    """The trace as a service has it since the run was made; None if it has not."""
    if not made.run.trace_id or not isinstance(service, HoldsTraces):
        return None
    retrievers = service.retrievers(made)
    return None if retrievers is None else relocated(made, retrievers)


def tell(
    store: Store,
    run_id: str,
    metrics: Sequence[AnswerMetric],
    *,
    capture: bool,
    service: object = None,
) -> Told:
    """A run with the credits of its appraisal that tables show, and its answer's scores.

    Args:
        capture: False leaves out all that a person or a model wrote.
        service: asked whether it has the trace already.
    """
    run = store.load(run_id)
    credits = shown_credits(store.credits(run.id))
    worth: dict[int, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for credit in credits:
        value = credit.measurement.value
        if credit.step is not None and credit.passage is not None and value is not None:
            worth[credit.step][credit.passage][_name(credit)] = value
    new = trace(run, worth=worth, capture=capture)
    there = located(new, service)
    made = there or new
    notes = [_score(run, made, metric, capture=capture) for metric in metrics]
    notes += [note for each in credits for note in _credit(each, made, capture=capture)]
    return Told(made, notes, there is not None)


def plans(
    experiment: Experiment, items: Sequence[Item], *, capture: bool
) -> Iterator[tuple[str, Plan, list[Item]]]:
    """For each arm with answers its label, its plan, and its items with runs."""
    examples = {
        item.entry.hash: Example(
            id=item.entry.hash,
            name=item.question.id,
            question=item.question.text if capture else None,
            answers=item.question.answers if capture else (),
            kind=item.entry.kind,
            hops=item.entry.hops,
        )
        for item in items
    }
    for arm in experiment.arms:
        own = [item for item in items if item.arm == arm.label and item.outcome]
        if not own:
            continue
        several = len(experiment.arms) > 1
        options = arm.settings.get("options")
        metadata: dict[str, Any] = {
            "workflow": arm.workflow,
            "options": content.options(
                options if isinstance(options, Mapping) else {}, capture=capture
            ),
            "reader": experiment.reader,
            "retriever": experiment.retriever,
            "entailment": experiment.entailment,
            "seed": experiment.seed,
        }
        plan = Plan(
            name=f"{experiment.name} {arm.label}" if several else experiment.name,
            dataset=experiment.name,
            metadata=metadata,
            examples=tuple(examples.values()),
        )
        yield arm.label, plan, own


def result(told: Told, example: str, *, capture: bool) -> Result:
    """A run as the result of an example."""
    run = told.run
    error = None
    if run.error is not None:
        error = f"{run.error.type}: {run.error.message}" if capture else run.error.type
    return Result(
        example=example,
        run_id=run.id,
        trace=told.trace.id,
        root=told.trace.root,
        answer=run.answer if capture else None,
        error=error,
        started=run.started,
        ended=run.started + timedelta(seconds=run.seconds),
        evaluations=told.of_run,
    )


def _name(credit: Credit) -> str:
    return title(credit.model_copy(update={"passage": None}))


def _score(run: Run, trace: Trace, metric: AnswerMetric, *, capture: bool) -> Note:
    [measured] = metric.score([case_of(run)])
    return Note(
        run_id=run.id,
        trace=trace.id,
        started=trace.run.started,
        span=trace.root,
        whole=True,
        name=metric.name,
        **_measured(measured, capture=capture),
    )


def _credit(credit: Credit, trace: Trace, *, capture: bool) -> Iterator[Note]:
    """The note of a credit; none of a passage that its step's retriever did not find."""
    span, place = trace.root, None
    if credit.step is not None:
        span = trace.retrievers.get(credit.step) or trace.steps.get(credit.step, "")
        if credit.passage is not None:
            [step] = (each for each in trace.run.steps if each.index == credit.step)
            keys = [hit.passage.key for hit in step.ranked]
            if credit.passage not in keys or credit.step not in trace.retrievers:
                return
            place = keys.index(credit.passage)
    elif credit.passage is not None or not span:
        return
    yield Note(
        run_id=credit.run_id,
        trace=trace.id,
        started=trace.run.started,
        span=span,
        place=place,
        whole=credit.step is None,
        name=_name(credit),
        identifier=credit.provenance.settings_hash,
        **_measured(
            credit.measurement,
            capture=capture,
            settings=credit.provenance.settings_hash,
        ),
    )


def _measured(measured: Measurement, *, capture: bool, **more: str) -> dict[str, Any]:
    told = measured.model_dump(include=TOLD, exclude_none=True)
    reason = measured.reason
    return {
        "value": measured.value,
        "label": None if reason is None else HIDDEN,
        "explanation": reason if capture or reason is None else HIDDEN,
        "metadata": {**told, **more},
    }
