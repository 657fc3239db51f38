"""The totals of runs that lists show, so that a list is filtered and ordered by them.

They follow from the credits: of an appraisal's totals by each meter, those of the appraisal that
measured the run last, of those with a value if there are any.
"""

import sqlalchemy as sa
from alembic import op

revision = "m015"
down_revision = "m014"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

FILL = """
INSERT INTO totals (run, meter, value)
SELECT run, meter, value FROM (
    SELECT run, meter, value, provenance, FIRST_VALUE(provenance) OVER (
        PARTITION BY run
        ORDER BY value IS NULL, measured IS NULL, measured DESC, provenance DESC
    ) AS shown
    FROM (
        SELECT credits.run, credits.meter, credits.value, credits.provenance, (
            SELECT MAX(appraisals.measured) FROM appraisals
            WHERE appraisals.run = credits.run AND appraisals.provenance = credits.provenance
        ) AS measured
        FROM credits
        WHERE credits.step = -1 AND credits.passage = '' AND credits.rule = 'total'
    ) AS timed
) AS chosen
WHERE provenance = shown
"""


def upgrade() -> None:
    op.create_table(
        "totals",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("meter", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_totals_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run", "meter", name="pk_totals"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_totals_value", "totals", ["meter", "value", "run"])
    op.execute(FILL)
