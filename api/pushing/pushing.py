"""Push runs and experiments to a service.

Invariants: what a service took is not sent again, unless it says something else now; what it
refused is named, and the next push tries it again; a push that is stopped continues where it was.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from hopscope.api import services, stored
from hopscope.api.sharing.collecting import Told, plans, result, tell
from hopscope.api.sharing.service import Keyed, Note, Plan, Result, Service, ServiceError, Within
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import digest
from hopscope.store.exporters.otlp import Trace
from hopscope.store.pushes import Pushes, Sent
from hopscope.store.store import Store
from hopscope.tracing import answer_metrics
from hopscope.tracing.spans.telemetry import captures_content

TRACE, NOTE, EXPERIMENT, RESULT = "trace", "note", "experiment", "result"
METRICS = ("exact_match", "f1")
RUNS = 20
"""Runs whose notes are sent together."""
NAMED = 100
"""Failures that a report names; further ones are only counted."""


@dataclass
class PushReport:
    """What became of a push."""

    service: str
    address: str
    project: str
    dry_run: bool = False
    """Nothing was sent: the counts tell what would be."""
    missing: tuple[str, ...] = ()
    """The environment variables whose keys the service wants and does not have."""
    sent: Counter[str] = field(default_factory=Counter)
    """trace, note, experiment and result: how many were sent."""
    known: Counter[str] = field(default_factory=Counter)
    """How many were there already."""
    requests: int = 0
    """Requests that sending took."""
    failed: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    """The first 100 failures: what, and why."""
    left: int = 0
    """Runs whose trace was not sent, because the service could not be reached."""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        failures = [{"what": what, "why": why} for what, why in self.failures]
        return {**vars(self), "sent": {**self.sent}, "known": {**self.known}, "failures": failures}

    def miss(self, what: str, why: str) -> None:
        """Count a failure."""
        self.failed += 1
        if len(self.failures) < NAMED:
            self.failures.append((what, why))


def service_of(named: "Service | Spec | str", to: str | None) -> Service:
    """A service by its name and options, as in `phoenix:project=demo`.

    Raises:
        UsageError: there is no such service or option, or the address is none.
    """
    if not isinstance(named, Spec | str):
        return named
    spec = Spec.of(named) if isinstance(named, Spec) else Spec.parse(named, argument=False)
    if to is not None:
        spec = Spec(spec.name, options=(("to", to), *spec.options))
    built: Service = components.named(services, spec)()
    return built


def target(service: Service) -> str:
    """Hash of a service's name, address and project."""
    return digest(service.name, service.address, service.project)


def push(
    service: Service | Spec | str,
    *specs: str,
    store: Store | str | Path | None = None,
    to: str | None = None,
    dry_run: bool = False,
    content: bool = True,
    metrics: Sequence[str] = METRICS,
    progress: Callable[[PushReport], None] = lambda report: None,
) -> PushReport:
    """Send runs to a service: traces with credits and scores, and experiments.

    Args:
        service: its name with options, as in `phoenix:project=demo`.
        specs: ids of runs or their beginnings, `last`, or names of experiments.
        store: the database, or its place.
        to: the service's address; by default that of its environment variable.
        dry_run: send nothing and tell what would be sent.
        content: False sends no questions, prompts, passages and answers. The environment's
            switches for spans, such as OPENINFERENCE_HIDE_INPUTS, hold as well.
        metrics: scores of answers that need no model.

    Raises:
        UsageError: there is no such run or service, or the service does not take the key.
    """
    if not specs:
        raise UsageError("name the runs or experiments to push")
    built = service_of(service, to)
    judges = [components.named(answer_metrics, Spec.parse(name))() for name in metrics]
    if isinstance(store, Store):
        pusher = _Pusher(built, store, judges, content and captures_content(), dry_run, progress)
        return pusher.push(specs)
    with Store.open(store, create=False) as opened:
        pusher = _Pusher(built, opened, judges, content and captures_content(), dry_run, progress)
        return pusher.push(specs)


class _Pusher:
    def __init__(
        self,
        service: Service,
        store: Store,
        judges: Sequence[Any],
        capture: bool,
        dry_run: bool,
        progress: Callable[[PushReport], None],
    ) -> None:
        self._service = service
        self._store = store
        self._judges = judges
        self._capture = capture
        self._dry = dry_run
        self._progress = progress
        self._ledger: Pushes = store.pushes(service.name, target(service))
        self._report = PushReport(service.name, service.address, service.project, dry_run)
        if isinstance(service, Keyed):
            self._report.missing = tuple(service.missing)
        self._left: set[str] = set()

    def push(self, specs: Sequence[str]) -> PushReport:
        runs = stored.ids(self._store, specs)
        self._left = {*runs}
        if not self._dry:
            self._service.check()
        try:
            for name in dict.fromkeys(specs):
                if self._store.experiments.known(name) is not None:
                    self._experiment(name, runs)
            self._runs([(run_id, None, "") for run_id in runs])
        except ServiceError as error:
            if not error.down:
                raise
            self._report.left = len(self._left)
            self._report.miss(self._service.address, str(error))
        return self._report

    def _experiment(self, name: str, runs: dict[str, stored.ArmLabel | None]) -> None:
        """Send an experiment, and remove its runs from those that are left to send."""
        found = self._store.experiments.find(name)
        items = self._store.experiments.items(name)
        for label, plan, own in plans(found, items, capture=self._capture):
            remote = self._begin(name, label, plan)
            if remote is None:
                continue
            examples = {each.id: each for each in plan.examples}
            of: list[tuple[str, Within | None, str]] = []
            for item in own:
                assert item.outcome is not None
                example = examples[item.entry.hash]
                within = Within(experiment=remote, plan=plan, example=example)
                of.append((item.outcome.run_id, within, digest(name, label, example.id)))
            self._runs(of, name)
            for item in own:
                assert item.outcome is not None
                runs.pop(item.outcome.run_id, None)

    def _begin(self, name: str, label: str, plan: Plan) -> str | None:
        """Begin an experiment; None if that failed."""
        key = digest(name, label)
        known = self._known(EXPERIMENT, key)
        if known is not None and self._same(known, plan.content):
            self._report.known[EXPERIMENT] += 1
            return known.remote
        self._report.requests += self._service.requests(plan)
        before = "" if known is None else known.remote
        made = self._send(
            Sent(EXPERIMENT, key, self._mark(plan.content), experiment=name, remote=before),
            f"the experiment {plan.name}",
            lambda: self._service.begin(plan, before),
        )
        return None if made is None else made.remote

    def _runs(
        self, of: Sequence[tuple[str, Within | None, str]], experiment: str | None = None
    ) -> None:
        """Send runs, with the experiment that they belong to and the key of their result there."""
        waiting = iter(of)
        while chunk := list(islice(waiting, RUNS)):
            told = [(self._tell(run_id), within, key) for run_id, within, key in chunk]
            arrived = self._traces(told)
            self._notes([note for each in arrived for note in each.notes])
            for each, within, key in told:
                if within is not None and any(each is there for there in arrived):
                    self._result(each, within, key, experiment)
            self._progress(self._report)

    def _tell(self, run_id: str) -> Told:
        asked = None if self._dry else self._service
        return tell(self._store, run_id, self._judges, capture=self._capture, service=asked)

    def _traces(self, told: Sequence[tuple[Told, Within | None, str]]) -> list[Told]:
        """Send traces; those that are there. One that was sent is sent again as part of an
        experiment, because it tells which."""
        contents = {each.run.id: _content(each.trace) for each, _, _ in told}
        keys = {each.run.id: digest(TRACE, each.run.id) for each, _, _ in told}
        known = self._ledger.known(TRACE, [*keys.values()])
        results = self._ledger.known(RESULT, [key for _, _, key in told])
        there = []
        for each, within, key in told:
            id = each.run.id
            if each.there:
                self._report.known[TRACE] += 1
                self._left.discard(id)
                there.append(each)
                continue
            before = known.get(keys[id])
            joins = within is not None and key not in results
            if before is not None and self._same(before, contents[id]) and not joins:
                self._report.known[TRACE] += 1
                self._left.discard(id)
                there.append(each)
                continue
            self._report.requests += self._service.requests(each.trace)
            made = self._send(
                Sent(TRACE, keys[id], self._mark(contents[id]), run_id=id),
                f"the trace of run {id}",
                lambda: self._service.send_trace(each.trace, within),  # noqa: B023
            )
            self._left.discard(id)
            if made is not None:
                there.append(each)
        return there

    def _notes(self, notes: Sequence[Note]) -> None:
        known = self._ledger.known(NOTE, [note.key for note in notes])
        new = []
        for note in notes:
            before = known.get(note.key)
            if before is not None and before.reason is None and before.content == note.content:
                self._report.known[NOTE] += 1
            else:
                new.append(note)
        for group in (
            [note for note in new if note.place is None],
            [note for note in new if note.place is not None],
        ):
            waiting = iter(group)
            while batch := list(islice(waiting, self._service.batch)):
                self._batch(batch)

    def _batch(self, notes: Sequence[Note]) -> None:
        """Send a batch; if it is refused, its notes one by one, to find which was the reason."""
        self._report.requests += self._service.requests(notes)
        if self._dry:
            self._report.sent[NOTE] += len(notes)
            return
        try:
            remote = self._service.send_notes(notes)
        except ServiceError as error:
            if error.down:
                raise
            if len(notes) > 1:
                for note in notes:
                    self._batch([note])
                return
            [note] = notes
            self._ledger.record([_sent(note, reason=str(error))])
            where = "a document" if note.place is not None else "a span"
            self._report.miss(f"{note.name} of {where} of run {note.run_id}", str(error))
            return
        ids = [*remote] if len(remote) == len(notes) else [""] * len(notes)
        self._ledger.record([_sent(note, remote=id) for note, id in zip(notes, ids, strict=True)])
        self._report.sent[NOTE] += len(notes)

    def _result(self, told: Told, within: Within, key: str, experiment: str | None) -> None:
        made: Result = result(told, within.example.id, capture=self._capture)
        before = self._known(RESULT, key)
        if before is not None and self._same(before, made.content):
            self._report.known[RESULT] += 1
            return
        self._report.requests += self._service.requests(made)
        remote = "" if before is None else before.remote
        self._send(
            Sent(RESULT, key, self._mark(made.content), experiment=experiment, remote=remote),
            f"the result of run {told.run.id}",
            lambda: self._service.send_result(within.experiment, made, remote),
        )

    def _mark(self, content: str) -> str:
        """The hash to remember: what went without texts is not the same as what went with them."""
        return content if self._capture else digest(content, "without texts")

    def _same(self, before: Sent, content: str) -> bool:
        """Whether this was sent, with texts or as it would be sent now."""
        return before.reason is None and before.content in (content, self._mark(content))

    def _known(self, kind: str, key: str) -> Sent | None:
        return self._ledger.known(kind, [key]).get(key)

    def _send(self, sent: Sent, what: str, call: Callable[[], str]) -> Sent | None:
        """Send something and remember it; None if the service refused it."""
        if self._dry:
            self._report.sent[sent.kind] += 1
            return sent
        try:
            made = sent._replace(remote=call())
        except ServiceError as error:
            self._ledger.record([sent._replace(reason=str(error))])
            if error.down:
                raise
            self._report.miss(what, str(error))
            return None
        self._ledger.record([made])
        self._report.sent[sent.kind] += 1
        return made


def _content(trace: Trace) -> str:
    return digest(trace.id, trace.run.model_dump_json())


def _sent(note: Note, *, remote: str = "", reason: str | None = None) -> Sent:
    return Sent(NOTE, note.key, note.content, note.run_id, remote=remote, reason=reason)
