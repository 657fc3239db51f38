"""Which options of a request a server refused, and what it told of tokens."""

import sqlalchemy as sa
from alembic import op

revision = "m010"
down_revision = "m009"
branch_labels = None
depends_on = None

OF_USAGE = ("steps", "decisions", "generations", "appraisals")


def upgrade() -> None:
    for table in OF_USAGE:
        for name in ("cached_tokens", "uncounted"):
            column = sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")
            op.add_column(table, column)
    op.add_column("generations", sa.Column("refused", sa.JSON(), nullable=True))
