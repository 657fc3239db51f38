"""Hashes of runs, credits and appraisals, by which `hopscope db check` finds changes.

Rows of before have none: to read every run again would take hours on a large database.
"""

import sqlalchemy as sa
from alembic import op

revision = "m011"
down_revision = "m010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("runs", "credits", "appraisals"):
        op.add_column(table, sa.Column("hash", sa.Text(), nullable=True))
