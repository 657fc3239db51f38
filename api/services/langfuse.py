"""Langfuse: runs as traces, scores on the trace or on the retriever's observation, experiments as
its own. Made from the documented schemas (SDK 5.0.4, the server's API definition); no server of
Langfuse was there to try it.

Traces go to the OTLP endpoint and keep their ids. A score has the note's key as id and the run's
start as time: with both, Langfuse replaces a score and does not add it. A document is no
observation there, so its score stands on the retriever's, and its metadata tell the place. The
credit that was not measured is a category, since a number it has not.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from hopscope.api.services._http import Connection, base, field, key
from hopscope.api.sharing.service import Found, Note, Plan, Result, ServiceError, Within
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import digest
from hopscope.store.exporters.otlp import Trace, encoded

PUBLIC, SECRET = "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"
CLOUD = "https://cloud.langfuse.com"
LARGEST = 1_000_000
"""Bytes of a request with scores."""
UNMEASURED = "not measured"
PAGE = 100
_EXPERIMENT = "langfuse.experiment."


def build(*, to: str | None = None, project: str = "") -> "Langfuse":
    """
    Args:
        to: the server's address; by default LANGFUSE_BASE_URL or LANGFUSE_HOST, else Langfuse's
            cloud.
        project: your name of the project that the keys belong to, where you push to several of a
            server: what one has is no reason not to send it to the other.
    """
    url = base(to, ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), CLOUD, CLOUD)
    return Langfuse(url, key(PUBLIC), key(SECRET), project)


class Langfuse:
    """A project of a server."""

    name = "langfuse"
    batch = 100

    def __init__(self, url: str, public: str, secret: str, project: str) -> None:
        self.address = url
        self.project = project
        given = {PUBLIC: public, SECRET: secret}
        self.missing = tuple(name for name, key in given.items() if not key)
        self._connection = Connection(url, keys=given, auth=(public, secret))

    def requests(self, what: Trace | Plan | Result | Sequence[Note]) -> int:
        match what:
            case Trace():
                return 1
            case Plan():
                return 1 + len(what.examples)
            case Result():
                return 0
            case _:
                return len(_bodies([_score(note) for note in what]))

    def check(self) -> None:
        if self.missing:
            raise UsageError(f"{self.address} wants keys: set {' and '.join(self.missing)}")
        field(self._connection.get("/api/public/projects"), "data", list, "Langfuse")

    def send_trace(self, trace: Trace, within: Within | None) -> str:
        member = {} if within is None else _member(trace, within)
        spans = [
            replace(span, attributes={**span.attributes, **member}) if member else span
            for span in trace.spans
        ]
        self._connection.ask(
            "POST",
            "/api/public/otel/v1/traces",
            content=gzip.compress(encoded(spans)),
            headers={
                "content-type": "application/x-protobuf",
                "content-encoding": "gzip",
                "x-langfuse-ingestion-version": "4",
            },
        )
        return trace.id

    def send_notes(self, notes: Sequence[Note]) -> Sequence[str]:
        scores = [_score(note) for note in notes]
        for body in _bodies(scores):
            told = self._connection.ask(
                "POST",
                "/api/public/scores",
                content=body,
                headers={"content-type": "application/json"},
            )
            if isinstance(told, Mapping) and told.get("rejected"):
                why = "; ".join(str(each.get("message")) for each in told.get("errors", []))
                raise ServiceError(f"{self.address} rejects {told['rejected']} scores: {why}"[:400])
        return [score["id"] for score in scores]

    def begin(self, plan: Plan, remote: str) -> str:
        dataset = self._connection.post("/api/public/v2/datasets", {"name": plan.dataset})
        for each in plan.examples:
            told = {"id": each.name or None, "kind": each.kind or None, "hops": each.hops}
            item: dict[str, Any] = {
                "datasetName": plan.dataset,
                "id": _item(plan, each.id),
                "metadata": {name: value for name, value in told.items() if value is not None},
            }
            if each.question is not None:
                item |= {"input": {"question": each.question}}
            if each.answers:
                item |= {"expectedOutput": [*each.answers]}
            self._connection.post("/api/public/dataset-items", item)
        experiment = digest("experiment", plan.dataset, plan.name)[:32]
        known = field(dataset, "id", str, "Langfuse")
        return json.dumps({"experiment": experiment, "dataset": known})

    def send_result(self, experiment: str, result: Result, remote: str) -> str:
        # The trace tells its experiment and item, and the scores are on it.
        return result.trace

    def labels(self, traces: Iterable[Trace]) -> Iterator[Found]:
        for trace in traces:
            cursor: str | None = None
            while True:
                told = self._connection.get(
                    "/api/public/v3/scores",
                    traceId=trace.id,
                    source="ANNOTATION",
                    fields="details,subject,annotation",
                    limit=PAGE,
                    **({"cursor": cursor} if cursor else {}),
                )
                for score in field(told, "data", list, "Langfuse"):
                    yield _found(score, trace.id)
                cursor = field(told, "meta", dict, "Langfuse").get("cursor")
                if not cursor:
                    break


def _item(plan: Plan, example: str) -> str:
    """The id of a dataset's item, which may not occur in another dataset."""
    return digest(plan.dataset, example)[:32]


def _member(trace: Trace, within: Within) -> dict[str, Any]:
    """The attributes of each span of a trace that belongs to an experiment."""
    known = json.loads(within.experiment)
    expected = within.example.answers
    return {
        f"{_EXPERIMENT}id": known["experiment"],
        f"{_EXPERIMENT}name": within.plan.name,
        f"{_EXPERIMENT}metadata": json.dumps(within.plan.metadata),
        f"{_EXPERIMENT}dataset.id": known["dataset"],
        f"{_EXPERIMENT}item.id": _item(within.plan, within.example.id),
        f"{_EXPERIMENT}item.root_observation_id": trace.root,
        **({f"{_EXPERIMENT}item.expected_output": json.dumps([*expected])} if expected else {}),
    }


def _score(note: Note) -> dict[str, Any]:
    measured = note.value is not None
    metadata = {**note.metadata, **({} if note.place is None else {"document": note.place})}
    return {
        "id": note.key,
        "timestamp": note.started.isoformat(),
        "traceId": note.trace,
        **({} if note.whole else {"observationId": note.span}),
        "name": note.name if note.place is None else f"{note.name} of a document",
        "value": note.value if measured else UNMEASURED,
        "dataType": "NUMERIC" if measured else "CATEGORICAL",
        **({"comment": note.explanation} if note.explanation else {}),
        "metadata": metadata,
    }


def _bodies(scores: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Arrays of scores as JSON, each no larger than the server takes.

    Raises:
        ServiceError: one score alone is larger.
    """
    bodies: list[bytes] = []
    waiting: list[bytes] = []
    size = 2  # the brackets
    for score in scores:
        data = json.dumps(score).encode()
        if len(data) + 2 > LARGEST:
            raise ServiceError(f"the score {score['name']} has {len(data)} bytes: too many")
        if size + len(data) + 1 > LARGEST:
            bodies.append(_array(waiting))
            waiting, size = [], 2
        waiting.append(data)
        size += len(data) + 1
    return [*bodies, _array(waiting)] if waiting else bodies


def _array(items: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _found(score: Mapping[str, Any], trace: str) -> Found:
    subject, value, kind = score.get("subject") or {}, score["value"], score["dataType"]
    text = value if kind in ("TEXT", "CORRECTION") else None
    comment = score.get("comment")
    return Found(
        trace=trace,
        span=subject["id"] if subject.get("kind") == "observation" else "",
        name=score["name"],
        score=float(value) if kind in ("NUMERIC", "BOOLEAN") else None,
        label=json.dumps(bool(value)) if kind == "BOOLEAN" else (None if text else _word(value)),
        note="\n".join(each for each in (text, comment) if each) or None,
        author=score.get("authorUserId") or "",
        remote=score["id"],
        made=datetime.fromisoformat(score["updatedAt"]),
    )


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
