"""What the caller keeps of a reply, which may end it."""

import sqlalchemy as sa
from alembic import op

revision = "m014"
down_revision = "m013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("exchanges", sa.Column("keeps", sa.Text(), nullable=True))
