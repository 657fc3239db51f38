"""The spans of a Phoenix project and the traces of an experiment of MLflow, from servers on
loopback that answer as theirs do."""

import json
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import hopscope
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.store.importers import mlflow
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


def mlflow_trace(number: int) -> dict[str, Any]:
    """As the API of MLflow writes it: ids in base64, values by their kinds."""
    trace = b64encode(number.to_bytes(16, "big")).decode()

    def span(id: int, parent: int, name: str, kind: str, told: Any, result: Any) -> dict[str, Any]:
        values = {"spanType": kind, "spanInputs": told, "spanOutputs": result}
        return {
            "trace_id": trace,
            "span_id": b64encode(id.to_bytes(8, "big")).decode(),
            **({"parent_span_id": b64encode(parent.to_bytes(8, "big")).decode()} if parent else {}),
            "name": name,
            "start_time_unix_nano": id,
            "end_time_unix_nano": 100,
            "attributes": [{"key": f"mlflow.{k}", "value": typed(v)} for k, v in values.items()],
            "status": {"code": "STATUS_CODE_OK"},
        }

    reply = {"choices": [{"message": {"role": "assistant", "content": "Cleo"}}]}
    found = [{"page_content": "The mayor is Cleo.", "metadata": {}, "id": "town"}]
    return {
        "spans": [
            span(1, 0, "ask", "CHAIN", {"question": f"Who is {number}?"}, "Cleo"),
            span(2, 1, "search", "RETRIEVER", {"query": "mayor"}, found),
            span(3, 1, "model", "CHAT_MODEL", {"messages": []}, reply),
        ]
    }


def typed(value: Any) -> dict[str, Any]:
    match value:
        case str():
            return {"string_value": value}
        case list():
            return {"array_value": {"values": list(map(typed, value))}}
        case _:
            pairs = [{"key": key, "value": typed(each)} for key, each in value.items()]
            return {"kvlist_value": {"values": pairs}}


class MLflow(BaseHTTPRequestHandler):
    """The experiment 7, `my agent`, of five traces, for who brings name and password."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        match parts.path.removeprefix("/api/"), asked:
            case "2.0/mlflow/experiments/get-by-name", {"experiment_name": ["my agent"]}:
                self.answer({"experiment": {"experiment_id": "7"}})
            case "2.0/mlflow/experiments/get", {"experiment_id": ["7"]}:
                self.answer({"experiment": {"experiment_id": "7"}})
            case "3.0/mlflow/traces/batchGet", {"trace_ids": ids}:
                self.answer({"traces": [mlflow_trace(int(id.removeprefix("tr-"))) for id in ids]})
            case _:
                self.answer({"error_code": "RESOURCE_DOES_NOT_EXIST"}, 404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/api/3.0/mlflow/traces/search"
        assert asked["locations"][0]["mlflow_experiment"] == {"experiment_id": "7"}
        begin = int(asked.get("page_token", "1"))
        end = min(begin + asked["max_results"], 6)
        self.answer(
            {"traces": [{"trace_id": f"tr-{number}"} for number in range(begin, end)]}
            | ({"next_page_token": str(end)} if end < 6 else {})
        )

    def answer(self, body: dict[str, Any], status: int = 200) -> None:
        if self.headers.get("Authorization") != f"Basic {b64encode(b'me:secret').decode()}":
            status = 401
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.asked = []  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def url() -> Iterator[str]:
    yield from serving(Phoenix)


@pytest.fixture
def mlflow_url() -> Iterator[str]:
    yield from serving(MLflow)


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
            ("v1/traces", "names no project or experiment"),
        ):
            with pytest.raises(HopscopeError, match=problem) as told:
                hopscope.import_runs(f"http://me:word@127.0.0.1:{port}/{place}", store=store)
            assert "secret" not in str(told.value)
            assert "word" not in str(told.value)
        with pytest.raises(HopscopeError, match="cannot be reached"):
            hopscope.import_runs("http://127.0.0.1:9/projects/x", store=store)
        assert store.ids() == []


def test_an_experiment_of_mlflow(
    tmp_path: Path, mlflow_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the URL of its page and by its name; in pages, too."""
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
    monkeypatch.setattr(mlflow, "PAGE", 2)
    with Store.open(tmp_path / "runs.db") as store:
        page = f"{mlflow_url}/#/experiments/7/traces?selectedEvaluationId=tr-1"
        report = hopscope.import_runs(page, store=store, name="agent")
        assert (report.stored, report.retrievals, report.unread) == (5, 5, 0)
        runs = list(map(store.load, store.ids()))
        assert sorted(run.question.text for run in runs) == [f"Who is {n}?" for n in range(1, 6)]
        assert {run.answer for run in runs} == {"Cleo"}
        assert {run.options["file"] for run in runs} == {"mlflow:7"}
        [search, reply] = runs[0].steps
        assert (search.query, [hit.passage.id for hit in search.ranked]) == ("mayor", ["town"])
        assert reply.output == "Cleo"
        named = hopscope.import_runs(
            f"{mlflow_url}/experiments/my%20agent", store=store, name="agent"
        )
        assert (named.stored, named.known) == (0, 5)


def test_what_mlflow_refuses_is_told_without_the_password(
    tmp_path: Path, mlflow_url: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_USERNAME", raising=False)
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN", raising=False)
    with Store.open(tmp_path / "runs.db") as store:
        with pytest.raises(UsageError, match="set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERN"):
            hopscope.import_runs(f"{mlflow_url}/experiments/7", store=store)
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
        with pytest.raises(UsageError, match="there is no such experiment") as told:
            hopscope.import_runs(f"{mlflow_url}/experiments/8", store=store)
        assert "secret" not in str(told.value)
        assert store.ids() == []
