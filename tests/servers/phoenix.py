"""A small Phoenix on loopback, as strict as version 20.26.1 in what it takes, which was read in its
source and tried; `tests/on_phoenix` asks the real one."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers.otlp import attributes

NOW = "2026-11-23T12:00:00+00:00"


class RefusedError(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass
class Phoenix:
    """What the server holds."""

    url: str = ""
    key: str = ""
    """That it asks for."""
    failing: list[int] = field(default_factory=list)
    """Statuses of the next answers."""
    refuses: str = ""
    """The name of a span annotation that it does not take."""
    bodies: list[bytes] = field(default_factory=list)
    spans: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    """By span, name and identifier."""
    documents: dict[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)
    """By span, name and position."""
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    evaluations: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def post(self, path: str, body: bytes, headers: Any) -> Any:
        if path == "/v1/traces":
            return self._traces(body, headers)
        sent = json.loads(body)
        if path == "/v1/span_annotations":
            return self._annotated(sent["data"])
        if path == "/v1/document_annotations":
            return self._judged(sent["data"])
        if path == "/v1/datasets/upload":
            self.examples |= dict(zip(sent["example_ids"], sent["inputs"], strict=True))
            return {"data": {"dataset_id": "D1=", "version_id": "V1="}}
        if path == "/v1/datasets/D1%3D/experiments":
            self.experiments[f"E{len(self.experiments)}"] = sent
            return {"data": {"id": f"E{len(self.experiments) - 1}"}}
        if match := re.fullmatch("/v1/experiments/(E[0-9]+)/runs", path):
            return self._ran(match[1], sent)
        if path == "/v1/experiment_evaluations":
            assert sent["experiment_run_id"] in self.runs
            assert ("result" in sent) != ("error" in sent)
            self.evaluations[sent["experiment_run_id"], sent["name"]] = sent
            return {"data": {"id": "V"}}
        if path == "/graphql":
            return {"data": self._graphql(sent["query"])}
        raise RefusedError(404, "Not Found")

    def get(self, path: str, asked: dict[str, list[str]]) -> Any:
        if path == "/v1/projects":
            return {"data": []}
        if path.endswith("/span_annotations"):
            found = [note for note in self.notes.values() if note["span_id"] in asked["span_ids"]]
            return {"data": [{**note, "id": "N", "updated_at": NOW} for note in found]}
        if path.endswith("/trace_annotations"):
            return {"data": []}
        if path == "/v1/datasets/D1%3D/examples":
            listed = [{"id": each, "node_id": f"x-{each}"} for each in self.examples]
            return {"data": {"examples": listed}}
        raise RefusedError(404, f"no {path}")

    def _traces(self, body: bytes, headers: Any) -> None:
        if headers["content-type"] != "application/x-protobuf":
            raise RefusedError(415, "Unsupported content type")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            project = attributes(resource.resource.attributes)["openinference.project.name"]
            assert headers["x-project-name"] == project
            for span in resource.scope_spans[0].spans:
                self.spans.setdefault(
                    span.span_id.hex(),
                    {
                        "trace": span.trace_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "name": span.name,
                        "project": project,
                        "attributes": attributes(span.attributes),
                    },
                )

    def _annotated(self, sent: list[dict[str, Any]]) -> Any:
        for note in sent:
            if note["span_id"] not in self.spans:
                raise RefusedError(404, f"Spans with IDs {note['span_id']} do not exist.")
            if self.refuses and note["name"] == self.refuses:
                raise RefusedError(422, "this name is not taken")
        for note in sent:
            self.notes[note["span_id"], note["name"], note["identifier"]] = note
        return {"data": [{"id": f"A{place}"} for place in range(len(sent))]}

    def _judged(self, sent: list[dict[str, Any]]) -> Any:
        for note in sent:
            if note.get("identifier"):
                raise RefusedError(422, "Non-empty identifier is not supported")
            known = self.spans.get(note["span_id"], {}).get("attributes", {})
            if f"retrieval.documents.{note['document_position']}.document.id" not in known:
                raise RefusedError(422, "Document position is out of bounds")
        for note in sent:
            self.documents[note["span_id"], note["name"], note["document_position"]] = note
        return {"data": [{"id": f"B{place}"} for place in range(len(sent))]}

    def _ran(self, experiment: str, sent: dict[str, Any]) -> Any:
        assert sent["dataset_example_id"].removeprefix("x-") in self.examples
        id = f"R-{experiment}-{sent['dataset_example_id']}"
        if id in self.runs and self.runs[id]["error"] is None:
            raise RefusedError(409, f"Experiment run {id} already exists")
        self.runs[id] = sent
        return {"data": {"id": id}}

    def _graphql(self, query: str) -> dict[str, Any]:
        return {
            alias: {
                "documentEvaluations": [
                    {
                        "id": "G",
                        "name": name,
                        "score": note["result"].get("score"),
                        "label": note["result"].get("label"),
                        "explanation": note["result"].get("explanation"),
                        "annotatorKind": note["annotator_kind"],
                        "documentPosition": position,
                        "updatedAt": NOW,
                        "user": None,
                    }
                    for (of, name, position), note in self.documents.items()
                    if of == span
                ]
            }
            for alias, span in re.findall(r'(s\d+): getSpanByOtelId\(spanId: "(\w+)"\)', query)
        }


@contextmanager
def phoenix() -> Iterator[Phoenix]:
    """A server."""
    state = Phoenix()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.bodies.append(body)
            path = urlsplit(self.path).path
            self._answer(lambda: state.post(path, body, self.headers))

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._answer(lambda: state.get(parts.path, parse_qs(parts.query)))

        def _answer(self, made: Any) -> None:
            status = 200
            if state.failing:
                status, reply = state.failing.pop(0), {"detail": "busy"}
            elif state.key and self.headers["authorization"] != f"Bearer {state.key}":
                status, reply = 401, {"detail": f"not {self.headers['authorization']}"}
            else:
                try:
                    reply = made()
                except RefusedError as refused:
                    status, reply = refused.status, {"detail": str(refused)}
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
