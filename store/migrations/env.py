"""The script that Alembic runs: an upgrade on the connection of `store.database.migrate`."""

from alembic import context

if __name__ == "env_py":  # the name Alembic loads this file under
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=context.config.attributes["version_table"],
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()
