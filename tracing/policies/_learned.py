"""Files of learned policies: plain JSON, read as records, refused where they do not fit."""

from pathlib import Path
from typing import TypeVar

from pydantic import Field, JsonValue, ValidationError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record


class Learned(Record):
    """What all of them say."""

    workflow: str
    """The policy fits no other."""
    reader: str
    """Name and revision, likewise."""
    learned: dict[str, JsonValue] = Field(default_factory=dict)
    """From what, and with which figures."""


Kind = TypeVar("Kind", bound=Learned)


def read(kind: type[Kind], path: Path, *, workflow: str, reader: str) -> Kind:
    """
    Raises:
        UsageError: there is no such file, it is no policy of this kind, or it is for others.
    """
    try:
        found = kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"policy {path} cannot be read: {error.strerror}; make one with {_recipe(kind, path)}"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(
            f"policy {path}: {where}: {first['msg']}; make one with {_recipe(kind, path)}"
        ) from None
    for what, its, given in (
        ("workflow", found.workflow, workflow),
        ("reader", found.reader, reader),
    ):
        if its != given:
            raise UsageError(
                f"policy {path} was learned for the {what} {its} and does not fit {given}: "
                f"use it with {its}, or learn another with `hopscope budget fit`"
            )
    return found


def _recipe(kind: type[Learned], path: Path) -> str:
    name = kind.model_fields["kind"].default
    asked = "--budget tokens=N" if name == "value" else f"--kind {name}"
    return f"`hopscope budget fit --from EXPERIMENT {asked} --out {path}`"
