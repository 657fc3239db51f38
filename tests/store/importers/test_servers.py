"""The spans of a Phoenix project, from a server on loopback that answers as Phoenix does."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import hopscope
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.store.store import Store

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, parent: int, name: str, attributes: dict[str, str]) -> dict[str, Any]:
    """As Phoenix writes it: names in snake case."""
    return {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": f"{parent:016x}" if parent else None,
        "name": name,
        "start_time_unix_nano": number,
        "end_time_unix_nano": 100,
        "attributes": [{"key": k, "value": {"string_value": v}} for k, v in attributes.items()],
        "status": {"code": 1, "message": ""},
    }


KIND = "openinference.span.kind"
SPANS = [
    span(3, 1, "model", {KIND: "LLM", "output.value": "Cleo"}),
    span(
        2,
        1,
        "search",
        {
            KIND: "RETRIEVER",
            "input.value": "mayor",
            "retrieval.documents.0.document.content": "The mayor is Cleo.",
        },
    ),
    span(1, 0, "ask", {KIND: "CHAIN", "input.value": "Who?", "output.value": "Cleo"}),
]


class Phoenix(BaseHTTPRequestHandler):
    """Pages of one span each, for who brings the key."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        place = int(parse_qs(parts.query).get("cursor", ["0"])[0])
        status, body = (
            200,
            json.dumps(
                {
                    "data": SPANS[place : place + 1],
                    "next_cursor": str(place + 1) if place < 2 else None,
                }
            ),
        )
        if self.headers.get("Authorization") != "Bearer secret":
            status, body = 401, "Invalid token"
        elif parts.path == "/v1/projects/broken/spans/otlpv1":
            body = "<html>"
        elif parts.path == "/v1/projects/busy/spans/otlpv1":
            status = 503
        elif parts.path != "/v1/projects/my%20agent/spans/otlpv1":
            status, body = 404, "Project not found"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Phoenix)
    server.asked = []  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_project_of_phoenix(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace may stretch over several pages."""
    monkeypatch.setenv("PHOENIX_API_KEY", "secret")
    with Store.open(tmp_path / "runs.db") as store:
        report = hopscope.import_runs(f"{url}/projects/my%20agent", store=store, name="agent")
        assert (report.stored, report.retrievals, report.unread) == (1, 1, 0)
        [run] = map(store.load, store.ids())
        assert run.options["file"] == "phoenix:my agent"
        assert (run.question.text, run.answer) == ("Who?", "Cleo")
        api = f"{url}/v1/projects/my%20agent/spans/otlpv1"
        again = hopscope.import_runs(api, store=store, name="agent")
        assert (again.stored, again.known) == (0, 1)
        named = hopscope.import_runs(api, store=store)
        assert named.experiment == "phoenix:my agent"


def test_what_a_server_refuses_is_told_without_the_key(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(url.rpartition(":")[2])
    monkeypatch.delenv("PHOENIX_API_KEY", raising=False)
    with Store.open(tmp_path / "runs.db") as store:
        with pytest.raises(UsageError, match="set PHOENIX_API_KEY"):
            hopscope.import_runs(f"{url}/projects/my%20agent", store=store)
        monkeypatch.setenv("PHOENIX_API_KEY", "secret")
        for place, problem in (
            ("projects/absent", "no such project"),
            ("projects/busy", "answers 503"),
            ("projects/broken", "something else than a page"),
            ("v1/traces", "names no project"),
        ):
            with pytest.raises(HopscopeError, match=problem) as told:
                hopscope.import_runs(f"http://me:word@127.0.0.1:{port}/{place}", store=store)
            assert "secret" not in str(told.value)
            assert "word" not in str(told.value)
        with pytest.raises(HopscopeError, match="cannot be reached"):
            hopscope.import_runs("http://127.0.0.1:9/projects/x", store=store)
        assert store.ids() == []
