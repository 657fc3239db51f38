"""The Alembic environment; revisions are in `versions`."""
