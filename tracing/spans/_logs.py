"""Sends evaluations as log events to an OTLP collector, under the limits of `_collector`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.util.types import Attributes

from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.tracing.spans._collector import ABORT_SECONDS, FLUSH_SECONDS, protocol


class StandIn(_logs.LoggerProvider):
    """Returns the loggers of another provider, or loggers that record nothing: a process can set
    the global provider only once."""

    def __init__(self) -> None:
        self.target: LoggerProvider | None = None

    def get_logger(
        self,
        name: str,
        version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> _logs.Logger:
        if self.target is None:
            return _logs.NoOpLogger(name, version, schema_url, attributes)
        return self.target.get_logger(name, version, schema_url, attributes)


class _Watched(LogRecordExporter):
    """Counts the events that were not delivered."""

    def __init__(self, inner: LogRecordExporter) -> None:
        self._inner = inner
        self.lost = 0

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.lost += len(batch)
        result = self._inner.export(batch)
        if result is LogRecordExportResult.SUCCESS:
            self.lost -= len(batch)
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]


def _exporter() -> LogRecordExporter:
    try:
        if protocol("LOGS") == "grpc":
            try:
                from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (
                    OTLPLogExporter as GrpcExporter,
                )
            except ModuleNotFoundError:
                other = "set OTEL_EXPORTER_OTLP_LOGS_PROTOCOL=http/protobuf"
                raise MissingExtraError("log events by gRPC", "grpc", instead=other) from None
            return GrpcExporter()
        from opentelemetry.exporter.otlp.proto.http._log_exporter import (
            OTLPLogExporter as HttpExporter,
        )

        return HttpExporter()
    except ValueError as error:
        raise UsageError(
            f"one of the OTEL_EXPORTER_OTLP_* variables cannot be used: {error}"
        ) from None


@contextmanager
def send_logs(resource: Resource, warn: Callable[[str], None]) -> Iterator[None]:
    """Send every event that is emitted inside to the collector that the environment names. If the
    host application has set up a provider of the SDK, that one sends them.

    Raises:
        UsageError: the environment cannot be used.
    """
    current = _logs.get_logger_provider()
    if isinstance(current, LoggerProvider):
        yield
        return
    if not isinstance(current, StandIn):
        current = StandIn()
        _logs.set_logger_provider(current)
    exporter = _Watched(_exporter())
    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    outer, current.target = current.target, provider
    try:
        yield
    finally:
        current.target = outer
        closing = Thread(target=provider.shutdown, name="hopscope-logs", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS)
        if closing.is_alive():
            exporter.shutdown()
            closing.join(ABORT_SECONDS)
        if exporter.lost or closing.is_alive():
            warn("not all evaluations could be sent as log events: is a collector there?")
