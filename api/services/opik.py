"""Opik: runs as traces, scores as feedback scores, experiments as its own. Made from the documented
schemas (SDK 2.2, the server's API definition); no server of Opik was there to try it.

Opik's ids are UUIDs of version 7. They follow here from OpenTelemetry's ids and the run's start,
and the spans carry them as attributes, so that scores find them. Spans that name their trace make
none, so the trace is sent first. Opik knows a score by its place and name, so the score of a
document tells the document's number in its name; and a score there is a number, so what was not
measured is not sent.
"""

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hopscope.api.services._http import Connection, base, field, key
from hopscope.api.sharing.service import Found, Note, Plan, Result, ServiceError, Within
from hopscope.runtime.spans import keys
from hopscope.store.exporters.otlp import Trace, encoded
from hopscope.store.traces.span import Span

KEY, WORKSPACE = "OPIK_API_KEY", "OPIK_WORKSPACE"
CLOUD = "https://www.comet.com/opik/api"
DEFAULT_WORKSPACE = "default"
MOST = 1000
"""Scores or items in a request."""
_FIXED = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in ids of what has none, datasets' items and experiments: the same have the same id."""
_PATH = "/v1/private"


def build(*, to: str | None = None, project: str | None = None) -> "Opik":
    """
    Args:
        to: the address of the API; by default OPIK_URL_OVERRIDE, else Opik's cloud. A server of
            your own has it at http://HOST:5173/api.
        project: the project of the traces; by default OPIK_PROJECT_NAME, else hopscope.
    """
    url = base(to, ("OPIK_URL_OVERRIDE",), CLOUD, "http://127.0.0.1:5173/api")
    named = project or os.environ.get("OPIK_PROJECT_NAME") or "hopscope"
    return Opik(url, key(KEY), os.environ.get(WORKSPACE) or DEFAULT_WORKSPACE, named)


class Opik:
    """A project of a workspace."""

    name = "opik"
    batch = MOST

    def __init__(self, url: str, secret: str, workspace: str, project: str) -> None:
        self.address = url
        self._project = project
        own = workspace != DEFAULT_WORKSPACE
        self.project = f"{workspace}/{project}" if own else project
        headers = {"comet-workspace": workspace, **({"authorization": secret} if secret else {})}
        self._connection = Connection(url, keys={KEY: secret}, headers=headers)

    def requests(self, what: Trace | Plan | Result | Sequence[Note]) -> int:
        match what:
            case Trace():
                return 2
            case Plan():
                return 2 + -(-len(what.examples) // MOST)
            case Result():
                return 1
            case _:
                return sum(bool(scores) for scores in self._scores(what).values())

    def check(self) -> None:
        field(self._connection.get(f"{_PATH}/projects", size=1), "content", list, "Opik")

    def send_trace(self, trace: Trace, within: Within | None) -> str:
        self._connection.post(f"{_PATH}/traces/batch", {"traces": [self._trace(trace)]})
        begun = trace.run.started
        spans = [
            replace(span, attributes={**span.attributes, **_ids(span, begun)})
            for span in trace.spans
        ]
        self._connection.ask(
            "POST",
            f"{_PATH}/otel/v1/traces",
            content=encoded(spans),
            headers={"content-type": "application/x-protobuf", "projectName": self._project},
        )
        return _uuid(begun, trace.id)

    def send_notes(self, notes: Sequence[Note]) -> Sequence[str]:
        for path, scores in self._scores(notes).items():
            if scores:
                self._connection.ask("PUT", path, json={"scores": scores})
        return []

    def begin(self, plan: Plan, remote: str) -> str:
        self._create(f"{_PATH}/datasets", {"name": plan.dataset})
        items = [
            {
                "id": _item(plan, each.id),
                "source": "sdk",
                "data": each.model_dump(mode="json", exclude={"id"}, exclude_none=True),
            }
            for each in plan.examples
        ]
        for begin in range(0, len(items), MOST):
            sent = {"dataset_name": plan.dataset, "items": items[begin : begin + MOST]}
            self._connection.ask("PUT", f"{_PATH}/datasets/items", json=sent)
        experiment = _uuid(_FIXED, "experiment", self.project, plan.dataset, plan.name)
        self._create(
            f"{_PATH}/experiments",
            {
                "id": experiment,
                "dataset_name": plan.dataset,
                "name": plan.name,
                "metadata": plan.metadata,
            },
        )
        return f"{experiment} {plan.dataset}"

    def send_result(self, experiment: str, result: Result, remote: str) -> str:
        id, _, dataset = experiment.partition(" ")
        item = _uuid(_FIXED, "result", id, result.example)
        sent = {
            "id": item,
            "experiment_id": id,
            "dataset_item_id": _uuid(_FIXED, "item", dataset, result.example),
            "trace_id": _uuid(result.started, result.trace),
        }
        self._connection.post(f"{_PATH}/experiments/items", {"experiment_items": [sent]})
        return item

    def labels(self, traces: Iterable[Trace]) -> Iterator[Found]:
        for trace in traces:
            begun = trace.run.started
            id = _uuid(begun, trace.id)
            try:
                told = self._connection.get(f"{_PATH}/traces/{id}")
            except ServiceError as error:
                if error.status == 404:
                    continue
                raise
            yield from _said(told, trace.id, "")
            names = {_uuid(begun, span.id): span.id for span in trace.spans}
            listed = self._connection.get(
                f"{_PATH}/spans", project_name=self._project, trace_id=id, size=MOST
            )
            for each in field(listed, "content", list, "Opik"):
                if each["id"] in names:
                    yield from _said(each, trace.id, names[each["id"]])

    def _create(self, path: str, body: Mapping[str, Any]) -> None:
        """Make something, unless it is there."""
        try:
            self._connection.post(path, body)
        except ServiceError as error:
            if error.status != 409:
                raise

    def _trace(self, trace: Trace) -> dict[str, Any]:
        [root] = (span for span in trace.spans if span.id == trace.root)
        question, answer = (root.text(name) for name in (keys.INPUT_VALUE, keys.OUTPUT_VALUE))
        failed = {
            "exception_type": root.text(keys.ERROR_TYPE) or "Error",
            "message": root.status,
            "traceback": root.status,
        }
        return {
            "id": _uuid(trace.run.started, trace.id),
            "project_name": self._project,
            "name": root.name,
            "start_time": _time(root.start),
            "end_time": _time(root.end),
            **({"input": {"question": question}} if question else {}),
            **({"output": {"answer": answer}} if answer else {}),
            "metadata": {keys.RUN_ID: trace.run.id},
            **({"error_info": failed} if root.failed else {}),
        }

    def _scores(self, notes: Iterable[Note]) -> dict[str, list[dict[str, Any]]]:
        """The scores by the path that takes them."""
        found: dict[str, list[dict[str, Any]]] = {
            f"{_PATH}/{kind}/feedback-scores": [] for kind in ("traces", "spans")
        }
        of_traces, of_spans = found.values()
        for note in notes:
            if note.value is None:
                continue
            (of_traces if note.whole else of_spans).append(
                {
                    "id": _uuid(note.started, note.trace if note.whole else note.span),
                    "project_name": self._project,
                    "name": note.name
                    if note.place is None
                    else f"{note.name} of document {note.place + 1}",
                    "value": note.value,
                    "source": "sdk",
                    **({"reason": note.explanation} if note.explanation else {}),
                }
            )
        return found


def _item(plan: Plan, example: str) -> str:
    return _uuid(_FIXED, "item", plan.dataset, example)


def _ids(span: Span, begun: datetime) -> dict[str, str]:
    """The attributes by which Opik takes a span's ids as they are."""
    parent = {"opik.parent_span_id": _uuid(begun, span.parent)} if span.parent else {}
    return {
        "opik.trace_id": _uuid(begun, span.trace),
        "opik.span_id": _uuid(begun, span.id),
        **parent,
    }


def _uuid(moment: datetime, *parts: str) -> str:
    """A UUID of version 7 that follows from a time and texts."""
    time = round(moment.timestamp() * 1000).to_bytes(6, "big")
    data = bytearray(time + hashlib.sha256("\0".join(parts).encode()).digest()[:10])
    data[6] = data[6] & 0x0F | 0x70
    data[8] = data[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(data)))


def _time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000).isoformat()


def _said(told: Mapping[str, Any], trace: str, span: str) -> Iterator[Found]:
    """The scores and comments that people gave."""
    for score in told.get("feedback_scores") or ():
        authors = score.get("value_by_author") or {score.get("last_updated_by") or "": score}
        for author, given in authors.items():
            if (given.get("source") or score.get("source")) == "ui":
                yield Found(
                    trace=trace,
                    span=span,
                    name=score["name"],
                    score=given.get("value"),
                    label=given.get("category_name"),
                    note=given.get("reason"),
                    author=author,
                    made=_moment(given, score),
                )
    for comment in told.get("comments") or ():
        yield Found(
            trace=trace,
            span=span,
            name="comment",
            note=comment["text"],
            author=comment.get("created_by") or "",
            remote=comment.get("id") or "",
            made=_moment(comment),
        )


def _moment(*told: Mapping[str, Any]) -> datetime:
    """When it was given last.

    Raises:
        ServiceError: that is not told.
    """
    for each in told:
        for name in ("last_updated_at", "created_at"):
            if each.get(name):
                return datetime.fromisoformat(each[name])
    raise ServiceError("Opik tells a score without its time")
