"""How an experiment's runs were measured, and which of these ways its tables show.

One way at a time is shown, the same for all runs: means over shares of one way and totals of
another would mean nothing. It is chosen here and nowhere else.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, distinct, func, select

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Provenance
from hopscope.store.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    appraisals,
    credits,
    items,
    provenances,
)

ORIGINAL = "original"
LATEST = "latest"


class Appraised(NamedTuple):
    """A way in which whole runs of an experiment were measured."""

    number: int
    """Of its provenance in this database."""
    provenance: Provenance
    runs: int
    """How many were measured so."""
    first: datetime | None
    """When the first of them was; None for credits of before this was kept."""
    last: datetime | None


def read_appraised(connection: Connection, experiment: int) -> list[Appraised]:
    """All ways, the one first measured first: `hopscope eval` measures before anything else can."""
    own = select(items.c.run).where(items.c.experiment == experiment)
    counted = (
        select(credits.c.provenance, func.count(distinct(credits.c.run)))
        .where(credits.c.run.in_(own), credits.c.step == WHOLE_RUN)
        .where(credits.c.rule == "total", credits.c.passage == WHOLE_STEP)
        .group_by(credits.c.provenance)
    )
    runs: dict[int, int] = dict(tuple(row) for row in connection.execute(counted))
    measured = appraisals.c.measured
    times = (
        select(appraisals.c.provenance, func.min(measured), func.max(measured))
        .where(appraisals.c.run.in_(own))
        .group_by(appraisals.c.provenance)
    )
    when = {number: (first, last) for number, first, last in connection.execute(times)}
    if not runs:
        return []
    rows = connection.execute(select(provenances).where(provenances.c.number.in_(runs)))
    found = [
        Appraised(
            row["number"],
            Provenance(**{name: row[name] for name in Provenance.model_fields}),
            runs[row["number"]],
            *when.get(row["number"], (None, None)),
        )
        for row in rows.mappings()
    ]
    return sorted(found, key=_place)


def chosen(found: Sequence[Appraised], which: str) -> Appraised | None:
    """The `original`, which was measured first, the `latest`, or the one whose settings' hash
    begins so. None where nothing was measured.

    Raises:
        UsageError: there is no such hash, or several begin so.
    """
    if which == ORIGINAL:
        return found[0] if found else None
    if which == LATEST:
        return max(found, key=_last, default=None)
    meant = [each for each in found if each.provenance.settings_hash.startswith(which)]
    if len(meant) != 1:
        known = ", ".join(each.provenance.settings_hash[:8] for each in found) or "there are none"
        raise UsageError(
            f"{which!r} does not name one of the appraisals: give {ORIGINAL}, {LATEST} or the "
            f"beginning of one of {known}"
        )
    return meant[0]


def _last(each: Appraised) -> tuple[float, int]:
    return each.last.timestamp() if each.last else float("-inf"), each.number


def _place(each: Appraised) -> tuple[bool, float, int]:
    return each.first is not None, each.first.timestamp() if each.first else 0.0, each.number
