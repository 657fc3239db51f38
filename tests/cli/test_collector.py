"""Spans for a collector that the environment names, perhaps for other programs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hopscope.tracing.spans.telemetry import collector
from tests import models
from tests.servers import openai_api
from tests.servers.otlp import Received, http_receiver

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SENT = "variables send questions, prompts, passages and answers to http://127.0.0.1"


@pytest.mark.parametrize("without", [(), ("--no-trace-content",)], ids=["texts", "no texts"])
def test_eval_says_where_texts_go_and_can_leave_them_out(
    without: tuple[str, ...], tmp_path: Path
) -> None:
    """The variables alone sent questions, prompts and passages without a word, and `eval` knew no
    `--no-trace-content`. A reader on a server spares the workers a model library."""
    service = openai_api.Service(models.tiny_llama(tmp_path / "llama"))
    with http_receiver() as received, openai_api.running(service):
        command = [sys.executable, "-m", "hopscope.cli", "eval", "hopland:dev", "-w", "naive"]
        command += ["--limit", "2", "--meter", "none", "--workers", "2", "--name", "e", *without]
        command += ["--reader", f"openai:{service.url}#{openai_api.MODEL}"]
        told = subprocess.run(
            [*command, "--db", str(tmp_path / "db")],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {ENDPOINT: received.url},
        )
    assert told.returncode == 0, told.stderr
    assert len(received.spans) >= 2
    assert (SENT in told.stderr) == holds_prompts(received) == (not without)


def holds_prompts(received: Received) -> bool:
    return b"Question:" in received.content


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, None),
        ({ENDPOINT: "http://a:s3cret@h:4318/x?key=s3cret"}, "http://h:4318"),
        ({ENDPOINT: "http://a:s3cret@h:4318//v1/traces"}, "http://h:4318"),
        ({ENDPOINT: "http://h/x?key=s3cret&to=http://y"}, "http://h"),
        ({ENDPOINT: "https://h/v1?key=s3c@ret"}, "a collector whose address is not clear"),
        ({ENDPOINT: "http://a:s3#cret@h"}, "a collector whose address is not clear"),
        ({ENDPOINT: "http://h#s3cret"}, "http://h"),
        ({ENDPOINT: "a:s3cret@h:4317"}, "h:4317"),
        ({ENDPOINT: "http://[::1", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t", ENDPOINT: "http://h"}, "http://t"),
        ({ENDPOINT: "http://[::1\u202e"}, "http://[::1"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "the default collector on this machine"),
        ({ENDPOINT: "http://h", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_the_place_is_shown_without_secrets(variables: dict[str, str], shown: str | None) -> None:
    assert collector(variables) == shown


@pytest.mark.parametrize("hidden", [False, True])
def test_a_served_search_keeps_queries_out_of_spans_where_variables_hide_texts(
    hidden: bool, tmp_path: Path
) -> None:
    """It asked the option alone."""
    spans = tmp_path / "spans.jsonl"
    command = [sys.executable, "-m", "hopscope.cli", "serve", "search", "hopland", "--port", "0"]
    serving = subprocess.Popen(
        [*command, "--trace-file", str(spans)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENINFERENCE_HIDE_INPUTS": str(hidden).lower()},
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert serving.stderr is not None
    told = iter(serving.stderr.readline, "")
    address = next(line.split()[-4] for line in told if "is served at" in line)
    asked = httpx.post(f"{address}/retrieve", json={"queries": ["Who employs Elsa Wilby?"]})
    serving.send_signal(signal.SIGINT)
    serving.communicate(timeout=60)
    assert asked.status_code == 200
    assert "retrieval" in spans.read_text()
    assert ("Elsa" in spans.read_text()) == (not hidden)
