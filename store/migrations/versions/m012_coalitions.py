"""The values of coalitions, from which credits follow without a model."""

import sqlalchemy as sa
from alembic import op

revision = "m012"
down_revision = "m011"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "coalitions",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("members", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_coalitions"),
        sa.UniqueConstraint("hash", name="uq_coalitions_hash"),
    )
    op.create_table(
        "games",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("provenance", NUMBER, nullable=False),
        sa.Column("meter", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("keys", sa.JSON(), nullable=True),
        sa.Column("members", sa.LargeBinary(), nullable=True),
        sa.Column("players", sa.LargeBinary(), nullable=True),
        sa.Column("remark", sa.Text(), nullable=False),
        sa.Column("comparable", sa.Boolean(), nullable=False),
        sa.Column("measured", sa.Integer(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name="fk_games_runs", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["provenance"], ["provenances.number"], name="fk_games_provenances"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_games"),
        sa.UniqueConstraint(
            "run", "provenance", "meter", "step", name="uq_games_run_provenance_meter_step"
        ),
    )
    op.create_table(
        "coalition_values",
        sa.Column("game", NUMBER, nullable=False),
        sa.Column("coalition", NUMBER, nullable=False),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=True),
        sa.Column("estimator", NUMBER, nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("certain", sa.Boolean(), nullable=False),
        sa.Column("dropped", sa.JSON(), nullable=True),
        sa.Column("unseen", sa.JSON(), nullable=True),
        sa.CheckConstraint(
            "(value IS NULL) <> (reason IS NULL)", name="ck_coalition_values_measured"
        ),
        sa.ForeignKeyConstraint(
            ["game"], ["games.number"], name="fk_coalition_values_games", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["coalition"], ["coalitions.number"], name="fk_coalition_values_coalitions"
        ),
        sa.ForeignKeyConstraint(["estimator"], ["texts.number"], name="fk_coalition_values_texts"),
        sa.PrimaryKeyConstraint("game", "coalition", name="pk_coalition_values"),
        sqlite_with_rowid=False,
    )
