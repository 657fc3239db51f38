"""Arize Phoenix (tried with 20.26.1).

Runs become traces of a project; credits, annotations on the spans of retrievers and on their
documents; scores of answers, annotations on the run's span; experiments, experiments of a dataset.
Labels that a person gave in Phoenix come back. The key is `PHOENIX_API_KEY`, where the server asks
for one.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import tenacity

from hopscope.api.services._http import Connection, base, key
from hopscope.api.sharing.service import (
    Found,
    Note,
    Plan,
    Result,
    Service,
    ServiceError,
    Within,
)
from hopscope.runtime.errors import UsageError
from hopscope.store.exporters.otlp import Trace, protobuf
from hopscope.store.traces import otlp
from hopscope.tracing.spans.provider import PROJECT_NAME

KEY = "PHOENIX_API_KEY"
ADDRESS = ("PHOENIX_COLLECTOR_ENDPOINT",)
PROJECT = "PHOENIX_PROJECT_NAME"
DEFAULT = "http://127.0.0.1:6006"
BATCH = 100
"""Notes in a request."""
PATIENCE = 20
"""Tries, half a second apart, for spans that the server does not know yet."""
PAGE = 1000
"""Annotations in a page."""
ASKED = 50
"""Spans in a request about documents."""
DOCUMENTS = (
    "getSpanByOtelId(spanId: {span}) {{ documentEvaluations {{ id name score label explanation "
    "annotatorKind documentPosition updatedAt user {{ username }} }} }}"
)


def build(*, to: str | None = None, project: str = "") -> Service:
    """
    Args:
        to: the server's address; by default PHOENIX_COLLECTOR_ENDPOINT, else this machine.
        project: the project of the traces; by default PHOENIX_PROJECT_NAME, else hopscope.
    """
    address = base(to, ADDRESS, DEFAULT, DEFAULT).removesuffix("/v1/traces")
    named = project or os.environ.get(PROJECT) or "hopscope"
    if any(mark in named for mark in "/?#"):
        raise UsageError(f"a project of Phoenix cannot be called {named!r}: it may hold no / ? #")
    return Phoenix(address, named)


class Phoenix:
    """A server."""

    name = "phoenix"
    batch = BATCH

    def __init__(self, address: str, project: str) -> None:
        self.address = address
        self.project = project
        secret = key(KEY)
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        self._server = Connection(address, keys={KEY: secret}, headers=headers)

    def requests(self, what: Trace | Plan | Result | Sequence[Note]) -> int:
        if isinstance(what, Plan):
            return 3
        return 1 + len(what.evaluations) if isinstance(what, Result) else 1

    def check(self) -> None:
        self._server.get("/v1/projects", limit=1)

    def retrievers(self, trace: Trace) -> dict[int, str] | None:
        path = f"/v1/projects/{quote(self.project, safe='')}/spans/otlpv1"
        try:
            page = self._server.get(path, trace_id=trace.id, limit=PAGE)
        except ServiceError as error:
            if error.status == 404:
                return None
            raise
        spans = [*otlp.spans(page)]
        if trace.root not in {span.id for span in spans}:
            return None
        # A trace that `push` sent has the ids that it would send again.
        below = {id: step for step, id in trace.steps.items()}
        found: dict[int, str] = {}
        for span in spans:
            if span.meaning == "search" and span.parent in below:
                found.setdefault(below[span.parent], span.id)
        return found

    def send_trace(self, trace: Trace, within: Within | None) -> str:
        self._server.ask(
            "POST",
            "/v1/traces",
            content=protobuf([trace], resource={PROJECT_NAME: self.project}),
            headers={"content-type": "application/x-protobuf", "x-project-name": self.project},
        )
        return trace.id

    def send_notes(self, notes: Sequence[Note]) -> Sequence[str]:
        documents = notes[0].place is not None
        path = "/v1/document_annotations" if documents else "/v1/span_annotations"
        # The server stores the spans of a request some time after it took it.
        patient = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_unknown),
            stop=tenacity.stop_after_attempt(PATIENCE),
            wait=tenacity.wait_fixed(0.5),
            reraise=True,
        )
        data = [_annotation(note) for note in notes]
        reply = patient(self._server.post, path, {"data": data}, sync=True)
        return [each["id"] for each in reply["data"]]

    def begin(self, plan: Plan, remote: str) -> str:
        known = json.loads(remote) if remote else {}
        examples = plan.examples
        sent = {
            "action": "append",  # examples of the same id are brought up to date
            "name": plan.dataset,
            "inputs": [_present(question=each.question) for each in examples],
            "outputs": [{"answers": list(each.answers)} for each in examples],
            "metadata": [_present(id=each.name, kind=each.kind, hops=each.hops)
                         for each in examples],
            "example_ids": [each.id for each in examples],
        }  # fmt: skip
        made = self._server.post("/v1/datasets/upload", sent, sync=True)["data"]
        dataset = made["dataset_id"]
        listed = self._server.get(f"/v1/datasets/{quote(dataset, safe='')}/examples")["data"]
        numbers = {each["id"]: each["node_id"] for each in listed["examples"]}
        experiment = known.get("experiment")
        if experiment is None:
            asked = {
                "name": plan.name,
                "metadata": plan.metadata,
                "version_id": made["version_id"],
            }
            path = f"/v1/datasets/{quote(dataset, safe='')}/experiments"
            experiment = self._server.post(path, asked)["data"]["id"]
        return json.dumps({"experiment": experiment, "dataset": dataset, "examples": numbers})

    def send_result(self, experiment: str, result: Result, remote: str) -> str:
        known = json.loads(experiment)
        run = remote or self._run(known["experiment"], known["examples"], result)
        for note in result.evaluations:
            evaluation = {
                "experiment_run_id": run,
                "name": note.name,
                "annotator_kind": note.kind,
                "start_time": result.ended.isoformat(),
                "end_time": result.ended.isoformat(),
                "metadata": note.metadata,
                **_judged(note),
            }
            self._server.post("/v1/experiment_evaluations", evaluation)
        return run

    def labels(self, traces: Iterable[Trace]) -> Iterator[Found]:
        listed = list(traces)
        owners = {span.id: each.id for each in listed for span in each.spans}
        spans = [*owners]
        for begin in range(0, len(spans), PAGE):
            asked = {"span_ids": spans[begin : begin + PAGE]}
            for given in self._annotations("span_annotations", asked):
                if given["annotator_kind"] == "HUMAN":
                    span = given["span_id"]
                    yield _found(given, owners[span], span)
        asked = {"trace_ids": [each.id for each in listed]}
        for given in self._annotations("trace_annotations", asked):
            if given["annotator_kind"] == "HUMAN":
                yield _found(given, given["trace_id"])
        retrievers = [span for each in listed for span in each.retrievers.values()]
        for begin in range(0, len(retrievers), ASKED):
            for span, given in self._documents(retrievers[begin : begin + ASKED]):
                if given["annotatorKind"] == "HUMAN":
                    yield _found_document(given, owners[span], span)

    def _run(self, experiment: str, examples: dict[str, str], result: Result) -> str:
        """Make the run of an example; its id there, also if it was there."""
        path = f"/v1/experiments/{quote(experiment, safe='')}/runs"
        sent = {
            "dataset_example_id": examples[result.example],
            "output": result.answer,
            "repetition_number": 1,
            "start_time": result.started.isoformat(),
            "end_time": result.ended.isoformat(),
            "trace_id": result.trace,
            "error": result.error,
        }
        try:
            return str(self._server.post(path, sent)["data"]["id"])
        except ServiceError as error:
            if error.status != 409:
                raise
        there = self._server.get(path)["data"]
        return next(
            str(each["id"])
            for each in there
            if each["dataset_example_id"] == examples[result.example]
        )

    def _annotations(self, path: str, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The annotations of spans or traces; none where the project holds none of these."""
        cursor: str | None = None
        where = f"/v1/projects/{quote(self.project, safe='')}/{path}"
        while True:
            more = {"cursor": cursor} if cursor else {}
            try:
                page = self._server.get(where, limit=PAGE, **asked, **more)
            except ServiceError as error:
                if error.status == 404:
                    return
                raise
            yield from page["data"]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _documents(self, spans: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The annotations of documents, which only GraphQL tells."""
        fields = " ".join(
            f"s{place}: {DOCUMENTS.format(span=json.dumps(span))}"
            for place, span in enumerate(spans)
        )
        reply = self._server.post("/graphql", {"query": f"{{ {fields} }}"})
        told = reply.get("data") or {}
        for place, span in enumerate(spans):
            for each in (told.get(f"s{place}") or {}).get("documentEvaluations", ()):
                yield span, each


def _unknown(error: BaseException) -> bool:
    return isinstance(error, ServiceError) and error.status == 404


def _annotation(note: Note) -> dict[str, Any]:
    told: dict[str, Any] = {
        "span_id": note.span,
        "name": note.name,
        "annotator_kind": note.kind,
        "metadata": note.metadata,
        "result": _present(score=note.value, label=note.label, explanation=note.explanation),
    }
    if note.place is None:
        return {**told, "identifier": note.identifier}
    return {**told, "document_position": note.place}


def _judged(note: Note) -> dict[str, Any]:
    if note.value is None:
        return {"error": note.explanation}
    return {"result": _present(score=note.value, label=note.label)}


def _found(given: dict[str, Any], trace: str, span: str = "") -> Found:
    result = given.get("result") or {}
    return Found(
        trace=trace,
        span=span,
        name=given["name"],
        score=result.get("score"),
        label=result.get("label"),
        note=result.get("explanation"),
        author=given.get("user_id") or given.get("identifier") or "",
        remote=given["id"],
        made=datetime.fromisoformat(given["updated_at"]),
    )


def _found_document(given: dict[str, Any], trace: str, span: str) -> Found:
    return Found(
        trace=trace,
        span=span,
        place=given["documentPosition"],
        name=given["name"],
        score=given["score"],
        label=given["label"],
        note=given["explanation"],
        author=(given.get("user") or {}).get("username") or "",
        remote=given["id"],
        made=datetime.fromisoformat(given["updatedAt"]),
    )


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
