"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "m001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "passages",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_passages"),
        sa.UniqueConstraint("content_hash", name="uq_passages_content_hash"),
    )
    op.create_table(
        "prompts",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("shown", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_prompts"),
        sa.UniqueConstraint("hash", name="uq_prompts_hash"),
    )
    op.create_table(
        "provenances",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("settings_hash", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("entailment", sa.Text(), nullable=True),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_provenances"),
        sa.UniqueConstraint("settings_hash", name="uq_provenances_settings_hash"),
    )
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column(
            "id", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False
        ),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answers", sa.JSON(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("workflow", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("retriever", sa.Text(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.CheckConstraint("(error_type IS NULL) = (error_message IS NULL)", name="ck_runs_error"),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
    )
    op.create_index("ix_runs_started", "runs", ["started", "number"], unique=False)
    op.create_table(
        "texts",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_texts"),
        sa.UniqueConstraint("hash", name="uq_texts_hash"),
    )
    op.create_table(
        "credits",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
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
        sa.CheckConstraint("(value IS NULL) <> (reason IS NULL)", name="ck_credits_measured"),
        sa.ForeignKeyConstraint(
            ["provenance"], ["provenances.number"], name="fk_credits_provenances"
        ),
        sa.ForeignKeyConstraint(
            ["run"], ["runs.number"], name="fk_credits_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run", "step", "rule", "meter", "provenance", name="pk_credits"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "listings",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("passage", NUMBER, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["passage"], ["passages.number"], name="fk_listings_passages"),
        sa.PrimaryKeyConstraint("number", name="pk_listings"),
        sa.UniqueConstraint("hash", name="uq_listings_hash"),
    )
    op.create_index("ix_listings_passage", "listings", ["passage"], unique=False)
    op.create_table(
        "messages",
        sa.Column("prompt", NUMBER, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(["prompt"], ["prompts.number"], name="fk_messages_prompts"),
        sa.ForeignKeyConstraint(["text"], ["texts.number"], name="fk_messages_texts"),
        sa.PrimaryKeyConstraint("prompt", "position", name="pk_messages"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "steps",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("parse_ok", sa.Boolean(), nullable=True),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name="fk_steps_runs", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run", "position", name="pk_steps"),
    )
    op.create_table(
        "exchanges",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("prompt", NUMBER, nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("temperature", sa.Double(), nullable=False),
        sa.Column("max_tokens", sa.Integer(), nullable=False),
        sa.Column("stop", sa.JSON(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["prompt"], ["prompts.number"], name="fk_exchanges_prompts"),
        sa.ForeignKeyConstraint(
            ["run", "step"],
            ["steps.run", "steps.position"],
            name="fk_exchanges_steps",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run", "step", "position", name="pk_exchanges"),
    )
    op.create_table(
        "placements",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("listing", NUMBER, nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("score", sa.Double(), nullable=True),
        sa.CheckConstraint("(role = 'ranked') = (score IS NOT NULL)", name="ck_placements_score"),
        sa.CheckConstraint(
            "role IN ('ranked', 'new', 'shown', 'evidence', 'dangling')", name="ck_placements_role"
        ),
        sa.CheckConstraint("(listing IS NULL) <> (key IS NULL)", name="ck_placements_passage"),
        sa.ForeignKeyConstraint(["listing"], ["listings.number"], name="fk_placements_listings"),
        sa.ForeignKeyConstraint(
            ["run", "step"],
            ["steps.run", "steps.position"],
            name="fk_placements_steps",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run", "step", "role", "rank", name="pk_placements"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "generations",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("exchange", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("tokens", sa.JSON(), nullable=False),
        sa.Column("token_ids", sa.LargeBinary(), nullable=True),
        sa.Column("logprobs", sa.LargeBinary(), nullable=True),
        sa.Column("entropies", sa.LargeBinary(), nullable=True),
        sa.Column("end_logprob", sa.Double(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("approx", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "step", "exchange"],
            ["exchanges.run", "exchanges.step", "exchanges.position"],
            name="fk_generations_exchanges",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run", "step", "exchange", "position", name="pk_generations"),
    )
