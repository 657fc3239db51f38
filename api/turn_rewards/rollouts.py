"""Rollouts of other programs as runs, read by the formats of `hopscope import`.

Invariant: there is one result for each record, in order, so that rewards line up with rollouts. Two
rollouts that did the same stay two, unlike runs that are imported.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Run
from hopscope.store import formats
from hopscope.store.importers.golds import Golds
from hopscope.store.trajectories.sources import RunFormat, Source, Unread

AUTO = "auto"


def of_file(path: Path, format: str = AUTO, golds: Golds | None = None) -> Iterator[Run | Unread]:
    """The rollouts of a file of JSON lines, one at a time. Their ids are the file's name and the
    line.

    Args:
        format: name of the format (`hopscope list formats`), with its options; `auto` finds it.
        golds: right answers, which replace those of the file.

    Raises:
        UsageError: there is no such file or format, or none fits.
        CorpusError: the rest of the file cannot be read.
    """
    source = Source(path)
    for read in _format(source, format).runs([source]):
        if isinstance(read, Run):
            question = golds.of(read.question) if golds else read.question
            id = source.where(int(str(read.options["line"])))
            yield read.model_copy(update={"id": id, "question": question})
        else:
            yield read
    yield from source.broken()


def of_records(records: Sequence[Mapping[str, Any]], format: str = AUTO) -> list[Run | Unread]:
    """The rollouts of records, as `of_file` reads them from lines.

    Raises:
        UsageError: there is no such format, none fits, or a record is no JSON or not one rollout.
    """
    if not records:
        return []
    with TemporaryDirectory() as folder:
        path = Path(folder, "rollouts")
        try:
            lines = [json.dumps(dict(record)) for record in records]
        except (TypeError, ValueError) as error:
            raise UsageError(f"rollouts: a record is no JSON: {error}") from None
        path.write_text("\n".join(lines), encoding="utf-8")
        found = list(of_file(path, format))
    if len(found) != len(records):
        raise UsageError(f"{len(records)} records hold {len(found)} rollouts: give one in each")
    return found


def _format(source: Source, named: str) -> RunFormat:
    """
    Raises:
        UsageError: there is no such format, or none fits the file.
    """
    if named != AUTO:
        spec = Spec.parse(named, argument=False)
        spec = replace(spec, name=spec.name.replace("-", "_"))
        built: RunFormat = components.named(formats, spec)()
        return built
    known: dict[str, RunFormat] = {
        name: components.load(formats, name).build() for name in components.names(formats)
    }
    fitting = next((format for format in known.values() if format.fits(source)), None)
    if fitting is None:
        raise UsageError(
            f"{source.name} looks like none of the formats of rollouts: choose from "
            f"{', '.join(known)}"
        )
    return fitting
