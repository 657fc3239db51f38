"""The appraisals of an experiment's runs, and the choice of the one that its tables show.

Tables show one appraisal, the same for all runs: means that mix appraisals would mean nothing. Only
this module chooses it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, distinct, func, select

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Provenance
from hopscope.store.database.schema import (
    WHOLE_RUN,
    WHOLE_STEP,
    appraisals,
    credits,
    items,
    provenances,
    runs,
)
from hopscope.store.runs.rows import provenance_of

ORIGINAL = "original"
LATEST = "latest"


class ExperimentAppraisal(NamedTuple):
    """A provenance under which whole runs of an experiment were measured."""

    number: int
    """Row number of the provenance in this database."""
    provenance: Provenance
    runs: int
    """Number of runs measured with it."""
    ran: dict[str, int]
    """Their number by the reader that ran them, which is empty if unknown."""
    first: datetime | None
    """Time of the first measurement; None for credits older than the record of times."""
    last: datetime | None


def read_experiment_appraisals(
    connection: Connection, experiment: int
) -> list[ExperimentAppraisal]:
    """All appraisals, the oldest first: the first is that of `hopscope eval`."""
    own = select(items.c.run).where(items.c.experiment == experiment)
    counted = (
        select(credits.c.provenance, runs.c.reader, func.count(distinct(credits.c.run)))
        .join(runs, runs.c.number == credits.c.run)
        .where(credits.c.run.in_(own), credits.c.step == WHOLE_RUN)
        .where(credits.c.rule == "total", credits.c.passage == WHOLE_STEP)
        .group_by(credits.c.provenance, runs.c.reader)
        .order_by(runs.c.reader)
    )
    ran: dict[int, dict[str, int]] = {}
    for number, reader, count in connection.execute(counted):
        ran.setdefault(number, {})[reader] = count
    measured = appraisals.c.measured
    times = (
        select(appraisals.c.provenance, func.min(measured), func.max(measured))
        .where(appraisals.c.run.in_(own))
        .group_by(appraisals.c.provenance)
    )
    when = {number: (first, last) for number, first, last in connection.execute(times)}
    if not ran:
        return []
    rows = connection.execute(select(provenances).where(provenances.c.number.in_(ran)))
    found = [
        ExperimentAppraisal(
            row["number"],
            provenance_of(row),
            sum(ran[row["number"]].values()),
            ran[row["number"]],
            *when.get(row["number"], (None, None)),
        )
        for row in rows.mappings()
    ]
    return sorted(found, key=_place)


def select_appraisal(
    found: Sequence[ExperimentAppraisal], which: str
) -> ExperimentAppraisal | None:
    """The `original` (the oldest), the `latest`, or the one whose settings hash has the prefix
    `which`. None if nothing was measured.

    Raises:
        UsageError: no hash has this prefix, or several do.
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


def _last(each: ExperimentAppraisal) -> tuple[float, int]:
    return each.last.timestamp() if each.last else float("-inf"), each.number


def _place(each: ExperimentAppraisal) -> tuple[bool, float, int]:
    return each.first is not None, each.first.timestamp() if each.first else 0.0, each.number
