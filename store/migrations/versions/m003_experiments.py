"""Experiments: their settings, arms and sittings, and one item for each question by each arm."""

import sqlalchemy as sa
from alembic import op

revision = "m003"
down_revision = "m002"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("retriever", sa.Text(), nullable=False),
        sa.Column("entailment", sa.Text(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_experiments"),
        sa.UniqueConstraint("name", name="uq_experiments_name"),
    )
    op.create_table(
        "questions",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("hops", sa.Integer(), nullable=True),
        sa.Column("supporting", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_questions"),
        sa.UniqueConstraint("hash", name="uq_questions_hash"),
    )
    op.create_table(
        "arms",
        sa.Column("experiment", NUMBER, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("workflow", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment"], ["experiments.number"], name="fk_arms_experiments", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("experiment", "position", name="pk_arms"),
        sa.UniqueConstraint("experiment", "label", name="uq_arms_experiment_label"),
    )
    op.create_table(
        "sittings",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("experiment", NUMBER, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.number"],
            name="fk_sittings_experiments",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_sittings"),
    )
    op.create_index("ix_sittings_experiment", "sittings", ["experiment"], unique=False)
    op.create_table(
        "items",
        sa.Column("experiment", NUMBER, nullable=False),
        sa.Column("question", NUMBER, nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sitting", NUMBER, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("run", NUMBER, nullable=True),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.CheckConstraint("(error_type IS NULL) = (error_message IS NULL)", name="ck_items_error"),
        sa.CheckConstraint("status <> 'ok' OR run IS NOT NULL", name="ck_items_done"),
        sa.CheckConstraint(
            "(status = 'failed') = (error_type IS NOT NULL)", name="ck_items_failed"
        ),
        sa.ForeignKeyConstraint(
            ["experiment"], ["experiments.number"], name="fk_items_experiments", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["experiment", "arm"],
            ["arms.experiment", "arms.position"],
            name="fk_items_arms",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["question"], ["questions.number"], name="fk_items_questions"),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name="fk_items_runs"),
        sa.ForeignKeyConstraint(["sitting"], ["sittings.number"], name="fk_items_sittings"),
        sa.PrimaryKeyConstraint("experiment", "question", "arm", name="pk_items"),
        sa.UniqueConstraint("run", name="uq_items_run"),
    )
    op.create_index("ix_items_status", "items", ["experiment", "status", "position"], unique=False)
