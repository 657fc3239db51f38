"""What was pushed to services of traces, and people's labels."""

import sqlalchemy as sa
from alembic import op

revision = "m013"
down_revision = "m012"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "pushes",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("run", NUMBER, nullable=True),
        sa.Column("experiment", NUMBER, nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("remote", sa.Text(), nullable=False),
        sa.Column("pushed", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_pushes_runs", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["experiment"],
            ["experiments.number"],
            name="fk_pushes_experiments",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_pushes"),
        sa.UniqueConstraint("target", "kind", "key", name="uq_pushes_target_kind_key"),
    )
    op.create_index("ix_pushes_run", "pushes", ["run"])
    op.create_index("ix_pushes_experiment", "pushes", ["experiment"])
    op.create_table(
        "labels",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("passage", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("remote", sa.Text(), nullable=False),
        sa.Column("made", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "target IN ('run', 'answer', 'step', 'passage')", name="ck_labels_target"
        ),
        sa.CheckConstraint(
            "score IS NOT NULL OR label IS NOT NULL OR note IS NOT NULL", name="ck_labels_content"
        ),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_labels_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_labels"),
        sa.UniqueConstraint(
            "run",
            "target",
            "step",
            "passage",
            "name",
            "author",
            "source",
            name="uq_labels_run_target_step_passage_name_author_source",
        ),
    )
