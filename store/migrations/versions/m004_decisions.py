"""Whether a step was worth its retrieval, as a policy decided before it."""

import sqlalchemy as sa
from alembic import op

revision = "m004"
down_revision = "m003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("steps", sa.Column("decision", sa.JSON(), nullable=True))
