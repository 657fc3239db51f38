"""Which format a file has."""

from collections.abc import Mapping
from dataclasses import replace

from hopscope.runtime import components
from hopscope.runtime.specs import Spec
from hopscope.store import formats
from hopscope.store.trajectories.sources import RunFormat, Source

AUTO = "auto"
UNKNOWN = "looks like none of the formats"
_LOOKED_AT = 1024


def named(given: str) -> tuple[str, RunFormat]:
    """The format of a name, which may have options and `-` for `_`; with its own name.

    Raises:
        UsageError: there is no such format or option.
    """
    spec = Spec.parse(given, argument=False)
    spec = replace(spec, name=spec.name.replace("-", "_"))
    return str(spec), components.named(formats, spec)()


def known() -> dict[str, RunFormat]:
    """All formats by name, without options."""
    return {name: components.load(formats, name).build() for name in components.names(formats)}


def fitting(source: Source, among: Mapping[str, RunFormat]) -> str | None:
    """The name of the first format that fits the file; None if none does."""
    return next((name for name, format in among.items() if format.fits(source)), None)


def misfit(source: Source) -> str:
    """Why no format fits the file: its content, or that it is none of the known ones."""
    if source.head:
        return UNKNOWN
    with source.path.open("rb") as file:
        if b"\0" in file.read(_LOOKED_AT):
            return "a binary file, and no traces in OTLP protobuf"
    return source.problem
