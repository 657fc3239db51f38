"""Decisions as rows of their own, out of the JSON that stood in their steps."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "m008"
down_revision = "m007"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

BATCH = 1000
"""Rows held at a time."""


def upgrade() -> None:
    made = op.create_table(
        "decisions",
        sa.Column("run", NUMBER, nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("retrieve", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("retrieval", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=True),
        sa.Column("signals", sa.JSON(), nullable=False),
        sa.Column("predicted_gain", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("predicted_cost", sa.Double(), nullable=True),
        sa.Column("price", sa.Double(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run", "step"],
            ["steps.run", "steps.position"],
            name="fk_decisions_steps",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("run", "step", name="pk_decisions"),
        sqlite_with_rowid=False,
    )
    _move(op.get_bind(), made)
    op.drop_column("steps", "decision")


def _move(connection: sa.Connection, decisions: sa.Table) -> None:
    """Read here and not by the database, whose JSON functions do not give back every number to
    the last digit."""
    steps = sa.table(
        "steps", sa.column("run"), sa.column("position"), sa.column("decision", sa.JSON())
    )
    query = sa.select(steps).where(steps.c.decision.is_not(sa.null())).order_by("run", "position")
    found = connection.execute(query, execution_options={"yield_per": BATCH})
    for rows in found.partitions():
        connection.execute(decisions.insert(), [_row(*row) for row in rows])


def _row(run: int, position: int, decision: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": run,
        "step": position,
        "policy": _escaped(decision["policy"]),
        "retrieve": decision["retrieve"],
        "reason": _escaped(decision["reason"]),
        "retrieval": decision["retrieval"],
        "signals": decision["signals"],
        "predicted_gain": decision["gain"],
        "low": decision["low"],
        "high": decision["high"],
        "predicted_cost": decision["cost"],
        "price": decision["price"],
        **decision["usage"],
    }


def _escaped(text: str) -> str:
    """As text stands in columns; JSON has its own way with NUL, which PostgreSQL refuses."""
    return text.replace("\x1b", "\x1b\x1b").replace("\x00", "\x1b0")
