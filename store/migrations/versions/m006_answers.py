"""What readers said, so that they need not say it again."""

import sqlalchemy as sa
from alembic import op

revision = "m006"
down_revision = "m005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            nullable=False,
        ),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_answers"),
        sa.UniqueConstraint("hash", name="uq_answers_hash"),
    )
