"""What entailment models said of pairs of texts, and how many pairs an appraisal needed."""

import sqlalchemy as sa
from alembic import op

revision = "m007"
down_revision = "m006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "entailments",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            nullable=False,
        ),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_entailments"),
        sa.UniqueConstraint("hash", name="uq_entailments_hash"),
    )
    op.add_column("appraisals", sa.Column("pairs", sa.JSON(), nullable=True))
