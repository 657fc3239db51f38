"""The tracer provider, behind OpenTelemetry's global one.

The global provider can be set only once in a process, but commands may run one after the other
in it, each with its own file and environment. So what is installed is a stand-in that points
to the provider of the moment.
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
"""The SDK's own 128 are used up by 32 documents of four attributes each."""
_LIMITS = ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT")


class StandIn(trace.TracerProvider):
    """Gives out the tracers of another provider, or such that record nothing."""

    def __init__(self) -> None:
        self._target: TracerProvider | None = None
        self._known: dict[tuple[str | None, ...], Tracer] = {}
        """Those of the target: the SDK makes a new one whenever it is asked."""

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
    """Whether whoever runs us has set the SDK up already, and delivers the spans."""
    return isinstance(trace.get_tracer_provider(), TracerProvider)


@contextmanager
def installed() -> Iterator[TracerProvider]:
    """A provider that is the global one for as long as the block lasts.

    Where the process already has one of the SDK's, set up by whoever runs us, it is used.
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
    """What the environment says, and our name where it says none."""
    stated = Resource.create()
    ours: dict[str, str] = {}
    if str(stated.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        ours = {SERVICE_NAME: "hopscope", SERVICE_VERSION: __version__}
    project = os.environ.get("PHOENIX_PROJECT_NAME")
    if project and PROJECT_NAME not in stated.attributes:
        ours[PROJECT_NAME] = project
    return stated.merge(Resource(ours))
