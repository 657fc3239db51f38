"""Records from rows: the only place where columns become the fields of credits and appraisals."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, select

from hopscope.runtime.types import Appraisal, Credit, Measurement, Provenance, Record, Usage
from hopscope.store.database.schema import WHOLE_RUN, WHOLE_STEP

PREFIX = "of_"
"""Before the names of a second table's columns, in queries that join two."""


def rows_of(connection: Connection, table: Table, *runs: int) -> Sequence[RowMapping]:
    """The runs' rows by column key, in order."""
    query = select(table).where(table.c.run.in_(runs)).order_by(*table.primary_key)
    return connection.execute(query).mappings().all()


def fields(
    record: type[Record], row: RowMapping, *, but: Collection[str] = (), prefix: str = ""
) -> dict[str, Any]:
    """The record's fields from the columns of the same names, after a prefix."""
    return {name: row[prefix + name] for name in record.model_fields.keys() - set(but)}


def provenance_of(row: RowMapping, prefix: str = "") -> Provenance:
    return Provenance(**fields(Provenance, row, prefix=prefix))


def usage_of(row: RowMapping) -> Usage:
    return Usage(**fields(Usage, row))


def credit_of(row: RowMapping, provenance: Provenance) -> Credit:
    """From a row of credits with the `id` of its run."""
    return Credit(
        run_id=row["id"],
        step=None if row["step"] == WHOLE_RUN else row["step"],
        passage=None if row["passage"] == WHOLE_STEP else row["passage"],
        rule=row["rule"],
        meter=row["meter"],
        measurement=Measurement(**fields(Measurement, row)),
        provenance=provenance,
    )


def appraisal_of(row: RowMapping, provenance: Provenance) -> Appraisal:
    """From a row of appraisals with the `id` of its run."""
    return Appraisal(
        run_id=row["id"],
        provenance=provenance,
        measured=row["measured"],
        usage=usage_of(row),
        seconds=row["seconds"],
        pairs=row["pairs"],
    )
