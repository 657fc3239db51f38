"""Where spans go: real collectors on loopback, a file, or nowhere."""

import json
import logging
import os
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hopscope.runtime import spans
from hopscope.runtime.errors import MissingExtraError, ReaderError, UsageError
from hopscope.runtime.execution.run import Run, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question
from hopscope.tracing.spans import _collector
from hopscope.tracing.spans.telemetry import captures_content, sends_spans, telemetry
from hopscope.workflows import naive
from tests.servers.otlp import Received, attributes, grpc_receiver, http_receiver
from tests.talk import ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Alba?", answers=("Bruno",))
PASSAGES = [Passage(id=f"p{i}", title=f"Title {i}", text=f"Passage text {i}.") for i in range(40)]
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OTEL_", "OPENINFERENCE_", "PHOENIX_")):
            monkeypatch.delenv(name)


@pytest.fixture
def said() -> list[str]:
    """What `warn` was told."""
    return []


def ask(reply: str | Exception = "the reply", *, capture: bool = True, k: int = 2) -> Run:
    deps = Deps(
        reader=Talker([reply]),
        retriever=ScriptedRetriever(lambda _: PASSAGES),
        capture_content=capture,
    )
    return run(Workflow("naive", naive.build(k=k), {"k": k}), QUESTION, deps)


def run_python(code: str, *arguments: str) -> str:
    """What it wrote to standard error."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr


def receiver(protocol: str) -> AbstractContextManager[Received]:
    return grpc_receiver() if protocol == "grpc" else http_receiver()


@pytest.fixture(params=["grpc", "http/protobuf"])
def collector(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Received]:
    with receiver(request.param) as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        yield received


def test_a_collector_gets_the_whole_run(
    collector: Received, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-project-name=hops,authorization=Bearer%20s")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    monkeypatch.setenv("PHOENIX_PROJECT_NAME", "hops")
    with telemetry(warn=said.append):
        result = ask(k=40)
    assert said == []
    assert [span.name for span in collector.spans] == [
        "invoke_workflow naive",
        "retrieve",
        "retrieval scripted",
        "answer",
        "chat scripted",
    ]
    root, retrieve, retrieval, answer, chat = collector.spans
    assert root.span_id.hex() == result.span_id
    assert root.trace_id.hex() == result.trace_id
    assert root.parent_span_id == b""
    assert [s.span_id.hex() for s in (retrieve, answer)] == [s.span_id for s in result.steps]
    assert {s.parent_span_id for s in (retrieve, answer)} == {root.span_id}
    assert (retrieval.parent_span_id, chat.parent_span_id) == (retrieve.span_id, answer.span_id)
    assert {s.dropped_attributes_count for s in collector.spans} == {0}
    found = attributes(retrieval.attributes)
    assert found["retrieval.documents.39.document.content"] == "Passage text 39."
    assert found["gen_ai.retrieval.top_k"] == 40
    assert attributes(chat.attributes)["gen_ai.response.finish_reasons"] == ["stop"]
    resource = collector.resource
    assert resource["service.name"] == "hopscope"
    assert resource["deployment.environment"] == "test"
    assert resource["openinference.project.name"] == "hops"
    assert collector.headers["x-project-name"] == "hops"
    assert collector.headers["authorization"] == "Bearer s"


def test_with_content_off_no_byte_of_it_is_sent(collector: Received) -> None:
    with telemetry():
        ask(capture=False)
        ask(ReaderError(f"cannot read {QUESTION.text}"), capture=False)
    assert len(collector.spans) == 10
    for text in ("Alba", "directed", "Passage text", "Title", "reply", "Documents"):
        assert text.encode() not in collector.content
    assert b"p1" in collector.content


def test_the_service_can_be_named(collector: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    with telemetry():
        ask()
    assert collector.resource["service.name"] == "mine"


def test_each_block_sends_its_own_spans_only(collector: Received) -> None:
    """OpenTelemetry's global provider can be set but once in a process."""
    for _ in range(2):
        with telemetry():
            ask()
        assert ask().trace_id == ""
    assert len(collector.spans) == 10


def test_when_nothing_is_asked_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    with telemetry():
        assert ask().trace_id == ""


def test_when_nothing_is_asked_the_sdk_is_not_even_imported() -> None:
    code = (
        "import sys\n"
        "from hopscope.tracing.spans.telemetry import telemetry\n"
        "from hopscope.runtime import spans\n"
        "with telemetry(), spans.step('a', 'retrieve', index=0, capture=False) as span:\n"
        "    assert spans.span_id(span) == ''\n"
        "wrong = {'opentelemetry.sdk', 'opentelemetry.exporter', 'grpc', 'requests'}\n"
        "assert not wrong & set(sys.modules), wrong & set(sys.modules)\n"
    )
    assert run_python(code) == ""


def test_a_process_with_an_sdk_of_its_own_sends_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `opentelemetry-instrument` every span would be sent twice."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "trace.set_tracer_provider(TracerProvider())\n"
        "from hopscope.runtime import spans\n"
        "from hopscope.tracing.spans.telemetry import telemetry\n"
        "with telemetry(Path(sys.argv[1])), \\\n"
        "     spans.step('a', 'judge', index=0, capture=False) as span:\n"
        "    pass\n"
        "with spans.step('b', 'retrieve', index=0, capture=False) as span:\n"
        "    assert spans.span_id(span)\n"
    )
    with http_receiver() as received:
        monkeypatch.setenv(ENDPOINT, received.url)
        path = tmp_path / "t.jsonl"
        run_python(code, str(path))
    assert received.requests == []
    assert [span.name for span in parsed(path).spans] == ["a"]


def test_by_default_an_unreachable_collector_is_one_line_on_standard_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = (
        "from hopscope.runtime import spans\n"
        "from hopscope.tracing.spans import _collector\n"
        "from hopscope.tracing.spans.telemetry import telemetry\n"
        "_collector.FLUSH_SECONDS = 0.2\n"
        "with telemetry(), spans.step('a', 'retrieve', index=0, capture=False):\n"
        "    pass\n"
    )
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    [message] = run_python(code).splitlines()
    assert message.startswith("not all spans could be sent to http://127.0.0.1:9")


@pytest.mark.parametrize("name", ["OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"])
def test_a_configured_collector_can_be_switched_off(
    name: str, collector: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "true" if "DISABLED" in name else "none")
    with telemetry():
        assert ask().trace_id == ""
    assert collector.requests == []


def test_a_disabled_sdk_says_that_the_file_stays_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with telemetry(tmp_path / "t.jsonl", warn=said.append):
        ask()
    assert len(said) == 1
    assert not (tmp_path / "t.jsonl").exists()


def parsed(path: Path) -> Received:
    """Read a trace file as a collector would: OTLP JSON has identifiers in hex."""
    received = Received()
    for text in path.read_text().splitlines():
        request = json.loads(text)
        for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for holder in (span, *span.get("links", ())):
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in holder:
                        holder[key] = b64encode(bytes.fromhex(holder[key])).decode()
        received.requests.append(ParseDict(request, ExportTraceServiceRequest()))
    return received


def test_a_trace_file_holds_what_a_collector_would_get(collector: Received, tmp_path: Path) -> None:
    with telemetry(tmp_path / "t.jsonl"):
        ask()
    from_file = parsed(tmp_path / "t.jsonl")
    assert [s.SerializeToString() for s in from_file.spans] == [
        s.SerializeToString() for s in collector.spans
    ]
    assert from_file.resource == collector.resource
    [span] = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])["resourceSpans"][0][
        "scopeSpans"
    ][0]["spans"]
    assert span["name"] == "retrieval scripted"
    assert len(span["traceId"]) == 32
    assert span["kind"] == 3
    assert span["startTimeUnixNano"].isdigit()


def test_a_trace_file_is_appended_to_even_after_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with telemetry(path):
        ask()
    whole = path.read_text()
    path.write_text(whole + '{"resourceSp')
    with telemetry(path):
        ask()
    lines = path.read_text().splitlines()
    assert [index for index, text in enumerate(lines) if not text.endswith("}")] == [5]
    assert len(lines) == 11


@pytest.mark.parametrize("name", ["", "no/such/folder/t.jsonl"])
def test_a_trace_file_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(UsageError, match=r"cannot write the trace file .*; name a file in"),
        telemetry(tmp_path / name),
    ):
        pass


def test_a_full_disk_costs_one_line(said: list[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with telemetry(full, warn=said.append):
        assert ask().status == "ok"
    [message] = said
    assert "/dev/full is incomplete" in message


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_an_unreachable_collector_costs_one_line_and_bounded_time(
    protocol: str,
    silent: bool,
    monkeypatch: pytest.MonkeyPatch,
    said: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(_collector, "FLUSH_SECONDS", 0.3)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if silent:
            listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        login = "" if silent else "user:secret@"
        monkeypatch.setenv(ENDPOINT, f"http://{login}{address}")
        begun = perf_counter()
        with telemetry(warn=said.append):
            assert ask().status == "ok"
        assert perf_counter() - begun < 3
    [message] = said
    assert message.startswith(f"not all spans could be sent to http://{address}")
    assert "secret" not in message
    assert capfd.readouterr() == ("", "")


def test_a_refusing_collector_is_told_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with http_receiver(status=401) as received, caplog.at_level(logging.WARNING):
        monkeypatch.setenv(ENDPOINT, received.url)
        with telemetry():
            ask()
    [record] = caplog.records
    assert record.name == "hopscope.tracing.spans.telemetry"
    assert "401" in record.getMessage()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100000"),
    ],
)
def test_unusable_settings_are_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4317")
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="OTEL_"), telemetry():
        pass


def test_without_grpc_the_extra_and_the_other_protocol_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4317")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    with pytest.raises(MissingExtraError, match=r"'hopscope\[grpc\]'; or set .*=http/protobuf"):
        _collector._exporter()


def test_grpc_is_spoken_to_its_own_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4317")
    assert _collector.protocol() == "grpc"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4318/v1/traces")
    assert _collector.protocol() == "http/protobuf"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/v1/traces"}, True),
        ({ENDPOINT: "http://h:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://h/v1/logs"}, False),
    ],
)
def test_when_spans_are_sent(env: dict[str, str], expected: bool) -> None:
    assert sends_spans(env) is expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, True),
        ({"OPENINFERENCE_HIDE_INPUTS": "true"}, False),
        ({"OPENINFERENCE_HIDE_OUTPUTS": "True"}, False),
        ({"OPENINFERENCE_HIDE_INPUTS": "false"}, True),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"}, False),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}, False),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}, True),
    ],
)
def test_when_content_is_captured(env: dict[str, str], expected: bool) -> None:
    assert captures_content(env) is expected


def test_a_span_outside_of_any_block_has_no_identity() -> None:
    with spans.step("a", "retrieve", index=0, capture=False) as span:
        assert (spans.span_id(span), spans.trace_id(span)) == ("", "")
