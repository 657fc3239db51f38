"""Credits of single passages; when credits were measured and what that cost."""

import sqlalchemy as sa
from alembic import op

revision = "m002"
down_revision = "m001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEPT = "run, step, rule, meter, provenance, value, reason, n, seed, estimator, low, high"


def upgrade() -> None:
    # The key of the table grows, which SQLite cannot do to a table that is there.
    op.execute("CREATE TABLE credits_before AS SELECT * FROM credits")
    op.drop_table("credits")
    op.create_table(
        "credits",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("passage", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("meter", sa.Text(), nullable=False),
        sa.Column("provenance", NUMBER, nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=True),
        sa.Column("estimator", sa.Text(), nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("certain", sa.Boolean(), nullable=False),
        sa.CheckConstraint("(value IS NULL) <> (reason IS NULL)", name="ck_credits_measured"),
        sa.ForeignKeyConstraint(
            ["provenance"], ["provenances.number"], name="fk_credits_provenances"
        ),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_credits_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint(
            "run", "step", "passage", "rule", "meter", "provenance", name="pk_credits"
        ),
        sqlite_with_rowid=False,
    )
    op.execute(
        f"INSERT INTO credits ({KEPT}, passage, certain) "
        f"SELECT {KEPT}, '', FALSE FROM credits_before"
    )
    op.drop_table("credits_before")
    op.create_table(
        "appraisals",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("provenance", NUMBER, nullable=False),
        sa.Column("measured", sa.DateTime(timezone=True), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provenance"], ["provenances.number"], name="fk_appraisals_provenances"
        ),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_appraisals_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run", "provenance", "measured", name="pk_appraisals"),
        sqlite_with_rowid=False,
    )
