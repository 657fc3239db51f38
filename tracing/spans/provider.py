"""The tracer provider, behind OpenTelemetry's global one.

A process can set the global provider only once, but several commands may run in it one after the
other, each with its own file and environment. So a stand-in is installed, which points to the
current provider.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.trace import NoOpTracer, Tracer
from opentelemetry.util.types import Attributes

from hopscope import __version__

PROJECT_NAME = "openinference.project.name"
MAX_ATTRIBUTES = 10_000
"""The SDK's default of 128 holds only 32 documents of four attributes each."""
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")


class StandIn(trace.TracerProvider):
    """Returns the tracers of another provider, or tracers that record nothing."""

    def __init__(self) -> None:
        self._target: TracerProvider | None = None
        self._known: dict[tuple[str | None, ...], Tracer] = {}
        """The target's tracers: the SDK makes a new one at each request."""

    @property
    def target(self) -> TracerProvider | None:
        return self._target

    @target.setter
    def target(self, provider: TracerProvider | None) -> None:
        self._target, self._known = provider, {}

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Attributes = None,
    ) -> Tracer:
        provider, known = self._target, self._known
        if provider is None:
            return NoOpTracer()
        asked = (instrumenting_module_name, instrumenting_library_version, schema_url)
        if attributes:
            return provider.get_tracer(*asked, attributes)
        if asked not in known:
            known[asked] = provider.get_tracer(*asked)
        return known[asked]


def hosted() -> bool:
    """Whether the host application has set up the SDK and delivers the spans."""
    return isinstance(trace.get_tracer_provider(), TracerProvider)


@contextmanager
def installed() -> Iterator[TracerProvider]:
    """A provider that is the global one inside the block.

    If the host application has set up a provider of the SDK, that one is used.
    """
    current = trace.get_tracer_provider()
    if isinstance(current, TracerProvider):
        yield current
        return
    if not isinstance(current, StandIn):
        current = StandIn()
        trace.set_tracer_provider(current)
    outer, provider = current.target, _provider()
    current.target = provider
    try:
        yield provider
    finally:
        current.target = outer


def _provider() -> TracerProvider:
    raised = None if any(os.environ.get(name) for name in _LIMITS) else MAX_ATTRIBUTES
    return TracerProvider(
        resource=_resource(),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_span_attributes=raised),
    )


def _resource() -> Resource:
    """The environment's resource, named hopscope if the environment gives no name."""
    stated = Resource.create()
    ours: dict[str, str] = {}
    if str(stated.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        ours = {SERVICE_NAME: "hopscope", SERVICE_VERSION: __version__}
    project = os.environ.get("PHOENIX_PROJECT_NAME")
    if project and PROJECT_NAME not in stated.attributes:
        ours[PROJECT_NAME] = project
    return stated.merge(Resource(ours))
