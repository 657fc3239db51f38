"""The export of spans: to a file, to an OTLP collector, or off.

Nothing is sent by default: without a trace file or one of the standard variables that name a
collector, no SDK is even imported. The variables are `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`,
`_PROTOCOL`, `_TIMEOUT`, `_COMPRESSION`, `_CERTIFICATE` and their `OTEL_EXPORTER_OTLP_TRACES_`
forms, `OTEL_TRACES_EXPORTER`, `OTEL_SDK_DISABLED`, `OTEL_SERVICE_NAME`,
`OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT`
and `PHOENIX_PROJECT_NAME`; the SDK itself reads most of them from the process's environment.

Evaluations are sent as log events, too, where `OTEL_LOGS_EXPORTER` is otlp or
`OTEL_EXPORTER_OTLP_LOGS_ENDPOINT` is set. `OTEL_EXPORTER_OTLP_ENDPOINT` alone does not ask for it,
because many backends of traces take no logs.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hopscope.runtime.texts.storable import line

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_HIDING = (
    "OPENINFERENCE_HIDE_INPUTS",
    "OPENINFERENCE_HIDE_OUTPUTS",
    "OPENINFERENCE_HIDE_INPUT_TEXT",
    "OPENINFERENCE_HIDE_OUTPUT_TEXT",
    "OPENINFERENCE_HIDE_INPUT_MESSAGES",
    "OPENINFERENCE_HIDE_OUTPUT_MESSAGES",
)
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

_log = logging.getLogger(__name__)


def _setting(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip().lower()


def captures_content(env: Mapping[str, str] = os.environ) -> bool:
    """Whether spans may carry questions, prompts, passages and answers.

    One switch controls all of them: to hide inputs, outputs or messages hides everything.
    """
    hidden = any(_setting(env, name) in ("true", "1") for name in _HIDING)
    return not hidden and _setting(env, _CAPTURE) not in ("false", "0", "no_content", "event_only")


def sends_spans(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names a collector to send spans to."""
    exporters = [name.strip() for name in _setting(env, "OTEL_TRACES_EXPORTER").split(",")]
    if "otlp" in exporters:
        return True
    return exporters == [""] and any(_setting(env, name) for name in _ENDPOINTS)


def collector(env: Mapping[str, str] = os.environ) -> str | None:
    """Where spans are sent, to be printed: the host, without anything that may be a key. None:
    nowhere."""
    if _setting(env, "OTEL_SDK_DISABLED") == "true" or not sends_spans(env):
        return None
    stated = next(filter(None, (env.get(name, "").strip() for name in _ENDPOINTS)), "")
    if not stated:
        return "the default collector on this machine"
    scheme, slashes, rest = stated.partition("//") if "//" in stated else ("", "", stated)
    authority = rest
    for mark in "/?#":
        authority = authority.partition(mark)[0]
    if "@" in rest.removeprefix(authority):  # of a key, or the end of a password
        return "a collector whose address is not clear"
    return line(scheme + slashes + authority.rpartition("@")[2])


def sends_logs(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment names a collector to send log events to."""
    exporters = [name.strip() for name in _setting(env, "OTEL_LOGS_EXPORTER").split(",")]
    if "otlp" in exporters:
        return True
    return exporters == [""] and bool(_setting(env, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"))


@contextmanager
def telemetry(
    trace_file: Path | None = None, *, warn: Callable[[str], None] = _log.warning
) -> Iterator[None]:
    """Record the spans made inside the block, if requested, and deliver them at its end.

    `trace_file` gets the spans as OTLP JSON, appended line by line (see `trace_file`).
    An unreachable collector costs one call of `warn` and a few seconds, never the run.
    If the host application has set up an SDK, that SDK sends the spans.

    Raises:
        UsageError: the file cannot be written, or a variable has a value that cannot be used.
    """
    sends, logs = sends_spans(), sends_logs()
    if trace_file is None and not sends and not logs:
        yield
        return
    if _setting(os.environ, "OTEL_SDK_DISABLED") == "true":
        if trace_file is not None:
            warn(f"OTEL_SDK_DISABLED is set: nothing is written to {trace_file}")
        yield
        return

    from hopscope.tracing.spans.provider import hosted, installed

    sends = sends and not hosted()
    with ExitStack() as stack:
        provider = stack.enter_context(installed())
        if trace_file is not None:
            from hopscope.tracing.spans.trace_file import append_spans

            stack.enter_context(append_spans(provider, trace_file, warn))
        if sends:
            from hopscope.tracing.spans._collector import send_spans

            stack.enter_context(send_spans(provider, warn))
        if logs:
            from hopscope.tracing.spans._logs import send_logs

            stack.enter_context(send_logs(provider.resource, warn))
        yield
