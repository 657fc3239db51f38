"""The answers behind the values of coalitions: tokens, and sampled answers grouped by meaning."""

import sqlalchemy as sa
from alembic import op

revision = "m016"
down_revision = "m015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("games", sa.Column("answers", sa.LargeBinary(), nullable=True))
