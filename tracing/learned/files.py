"""Files of learned policies: plain JSON, read as records; a file that does not fit is refused."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import Field, JsonValue, ValidationError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.storable import line
from hopscope.runtime.types import Record
from hopscope.runtime.validation import first
from hopscope.tracing.learned.promise import Promise

_log = logging.getLogger(__name__)


class LearnedFile(Record):
    """The fields of every learned file."""

    workflow: str
    """The only workflow that the policy fits; empty for all."""
    reader: str
    """The only reader that it fits, by name and revision; empty for all."""
    learned: dict[str, JsonValue] = Field(default_factory=dict)
    """The training runs and statistics."""
    promise: Promise | None = None
    """What it promises, if it was learned with a guarantee."""
    prompts: tuple[str, ...] = ()
    """The sets of prompts of the runs that it is for, by name and hash; empty if not known."""


AnyLearnedFile = TypeVar("AnyLearnedFile", bound=LearnedFile)


def read(
    kind: type[AnyLearnedFile],
    path: Path,
    *,
    workflow: str | None,
    reader: str | None,
    prompts: str | None = None,
) -> AnyLearnedFile:
    """Other prompts than those of its runs are warned of.

    Args:
        workflow, reader, prompts: None is not compared.

    Raises:
        UsageError: the file is missing, is not a policy of this kind, or is for another workflow or
            reader.
    """
    try:
        policy = kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"policy {path} cannot be read: {error.strerror}; make one with {_recipe(kind, path)}"
        ) from None
    except ValidationError as error:
        problem = first(error, whole="the file")
        raise UsageError(f"policy {path}: {problem}; make one with {_recipe(kind, path)}") from None
    for what, its, given in (
        ("workflow", policy.workflow, workflow),
        ("reader", policy.reader, reader),
    ):
        if its and given is not None and its != given:
            raise UsageError(
                f"policy {path} was learned for the {what} {its} and does not fit {given}: "
                f"use it with {its}, or learn another with `hopscope budget fit`"
            )
    unseen = [] if prompts is None or prompts in policy.prompts else [prompts]
    if others := differing(policy.prompts, unseen):
        _log.warning(
            f"policy {path} was learned from runs with {others[0]}, and these are with "
            f"{others[1]}: what it predicts may not hold here; learn another with `hopscope budget "
            "fit`"
        )
    return policy


def differing(learned: Sequence[str], here: Sequence[str]) -> tuple[str, str] | None:
    """The prompts of a policy and those of some runs in words, if they are known and differ."""
    if not learned or not here or {*learned} == {*here}:
        return None
    one, other = (f"the prompts {line(', '.join(sorted({*each})))}" for each in (learned, here))
    return one, other


def _recipe(kind: type[LearnedFile], path: Path) -> str:
    name = kind.model_fields["kind"].default
    if name == "route":
        return f"`hopscope budget fit --outcomes OUTCOMES --out {path}`"
    option = "--budget tokens=N" if name == "value" else f"--kind {name}"
    return f"`hopscope budget fit --from EXPERIMENT {option} --out {path}`"
