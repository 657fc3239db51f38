"""Passages that a meter did not show, because the context was too long."""

import sqlalchemy as sa
from alembic import op

revision = "m005"
down_revision = "m004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("credits", sa.Column("dropped", sa.JSON(), nullable=True))
