"""Pull people's labels from a service into the store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopscope.api import stored
from hopscope.api.pushing.pushing import service_of
from hopscope.api.sharing.collecting import located
from hopscope.api.sharing.service import Found, Service
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Run
from hopscope.store.exporters.otlp import Trace, trace
from hopscope.store.labels import Label, Target
from hopscope.store.store import Store

RUNS = 20
"""Runs that a service is asked about together."""


@dataclass
class PullReport:
    """What became of a pull."""

    service: str
    address: str
    project: str
    runs: int = 0
    """Runs that were asked about."""
    found: int = 0
    """Labels that people gave them."""
    new: int = 0
    """Of these, labels that are new here or have changed."""
    ambiguous: int = 0
    """Labels on a whole trace of several runs: none is given them."""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return {**vars(self)}


def pull(
    service: Service | Spec | str,
    *specs: str,
    store: Store | str | Path | None = None,
    to: str | None = None,
    progress: Callable[[PullReport], None] = lambda report: None,
) -> PullReport:
    """Store what people said in a service about runs that were pushed or traced there.

    Args:
        service, specs, store, to: as for `push`.

    Raises:
        UsageError: there is no such run or service, or the service does not take the key.
        ServiceError: the service failed; what was read before is stored.
    """
    if not specs:
        raise UsageError("name the runs or experiments whose labels to pull")
    built = service_of(service, to)
    if isinstance(store, Store):
        return _pull(built, store, specs, progress)
    with Store.open(store, create=False) as opened:
        return _pull(built, opened, specs, progress)


def _pull(
    service: Service,
    store: Store,
    specs: tuple[str, ...],
    progress: Callable[[PullReport], None],
) -> PullReport:
    report = PullReport(service.name, service.address, service.project)
    wanted = [*stored.ids(store, specs)]
    service.check()
    for begin in range(0, len(wanted), RUNS):
        made = [trace(store.load(run_id)) for run_id in wanted[begin : begin + RUNS]]
        traces = [located(each, service) or each for each in made]
        by_span = {(each.id, span): each for each in traces for span in _spans(each)}
        by_id = {each.id: each for each in traces}
        given = [*dict.fromkeys(service.labels(traces))]
        whole = {found.trace for found in given if not found.span and found.trace in by_id}
        shared = {id for id, number in store.tracing(whole).items() if number > 1}
        labels: list[Label] = []
        for found in given:
            if not found.span and found.trace in shared:
                report.ambiguous += 1
                continue
            own = by_span.get((found.trace, found.span)) if found.span else by_id.get(found.trace)
            labels += [] if own is None else _label(found, own, service.name)
        report.runs += len(traces)
        report.found += len(labels)
        report.new += store.labels.save(labels)
        progress(report)
    return report


def _label(found: Found, trace: Trace, source: str) -> Iterator[Label]:
    """A label of what it speaks of; none if that is no part of the run."""
    target: Target = "run"
    step = _steps(trace).get(found.span)
    passage = None
    if found.span not in ("", trace.root):
        if step is None:
            return
        target = "step"
        if found.place is not None:
            passage = _key(trace.run, step, found.place)
            if passage is None:
                return
            target = "passage"
    if found.score is None and not found.label and not found.note:
        return
    yield Label(
        run_id=trace.run.id,
        target=target,
        step=step,
        passage=passage,
        name=found.name,
        score=found.score,
        label=found.label or None,
        note=found.note or None,
        author=found.author,
        source=source,
        remote=found.remote,
        made=found.made,
    )


def _spans(trace: Trace) -> set[str]:
    """The run's spans."""
    return {trace.root, *_steps(trace), *(span.id for span in trace.spans)}


def _steps(trace: Trace) -> dict[str, int]:
    """The step of each span below the run's."""
    steps = {span: index for index, span in trace.steps.items()}
    return steps | {span.id: steps[span.parent] for span in trace.spans if span.parent in steps}


def _key(run: Run, step: int, place: int) -> str | None:
    """The key of the passage at a place of a step's ranking."""
    [found] = (each for each in run.steps if each.index == step)
    return found.ranked[place].passage.key if 0 <= place < len(found.ranked) else None
