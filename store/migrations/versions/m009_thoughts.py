"""Thoughts beside the answers, and their tokens beside the other tokens."""

import sqlalchemy as sa
from alembic import op

revision = "m009"
down_revision = "m008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("steps", "decisions", "generations", "appraisals"):
        tokens = sa.Column("thinking_tokens", sa.BigInteger(), nullable=False, server_default="0")
        op.add_column(table, tokens)
    op.add_column("exchanges", sa.Column("thought", sa.Text(), nullable=True))
    op.add_column("generations", sa.Column("thought", sa.Text(), nullable=True))
    op.add_column("generations", sa.Column("thought_tokens", sa.Integer(), nullable=True))
    op.add_column("generations", sa.Column("thought_end", sa.Text(), nullable=True))
