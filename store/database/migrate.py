"""Upgrade a database to this version's tables.

A new table or column needs a new file in `migrations/versions/` and its revision in `HEAD`. Files
there are never edited once released. They use plain SQLAlchemy types and never import the schema,
which changes later.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from hopscope.runtime.errors import MissingDatabaseError, StoreError, WrongDatabaseError
from hopscope.store.database.database import Database

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "m016"
"""The newest revision. A constant, so that opening a current database need not load Alembic."""

FOLDER = Path(__file__).parents[1] / "migrations"

VERSION_TABLE = "hopscope_version"
"""Not Alembic's usual name, which another program may use in the same database."""

NAMED = 5
"""How many tables of another program the message names."""

_POSTGRESQL_LOCK = 0x686F7073636F7065
"""Advisory lock held while migrating: the letters "hopscope"."""


def require(database: Database) -> None:
    """
    Raises:
        MissingDatabaseError: there is no database, or an empty one, which stays empty.
        WrongDatabaseError: it belongs to another program.
    """
    if not database.missing:
        with database.reading() as connection:
            if revision(connection) is not None:
                return
            _check(database.name, connection, None)
    raise MissingDatabaseError(
        f"no runs are kept in {database.name}: make one with `hopscope run`, or name another "
        "database with --db or HOPSCOPE_DB"
    )


def upgrade(database: Database) -> str | None:
    """Create or update the tables if necessary; returns their former revision.

    Raises:
        StoreError: the database belongs to a newer version or to another program.
    """
    with database.reading() as connection:
        current = revision(connection)
    if current == HEAD:
        return current
    with database.migrating() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(
                text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRESQL_LOCK}
            )
        current = revision(connection)  # another process may have been first
        if current != HEAD:
            _check(database.name, connection, current)
            run_alembic(connection)
    return current


def check_current(database: Database) -> None:
    """
    Raises:
        StoreError: the tables are not this version's, and the database cannot be written.
    """
    with database.reading() as connection:
        current = revision(connection)
        if current != HEAD:
            _check(database.name, connection, current)
            raise StoreError(
                f"the database {database.name} was written by an older Hopscope and cannot be "
                "brought up to date, as it or its folder is not writable: copy it to where you can "
                "write"
            )


def revision(connection: Connection) -> str | None:
    """The revision of the database; None without our tables."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def run_alembic(connection: Connection, target: str = "head") -> None:
    """Upgrade to `target` in the connection's transaction."""
    from alembic import command

    config = _config()
    config.attributes.update(connection=connection, version_table=VERSION_TABLE)
    command.upgrade(config, target)


def _check(name: str, connection: Connection, current: str | None) -> None:
    """Raises StoreError if the database cannot be upgraded, WrongDatabaseError if it is another
    program's."""
    from alembic.script import ScriptDirectory

    known = [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]
    if current is not None and current not in known:
        raise StoreError(
            f"the database {name} was written by a newer Hopscope (its tables are at {current}, "
            f"this version knows up to {HEAD}): upgrade Hopscope or choose another with --db"
        )
    foreign = sorted(inspect(connection).get_table_names()) if current is None else []
    if foreign:
        named = ", ".join(foreign[:NAMED]) + (", ..." if len(foreign) > NAMED else "")
        advice = "choose another file with --db or HOPSCOPE_DB"
        if connection.dialect.name == "postgresql":
            advice = (
                "choose another database, or make a schema (CREATE SCHEMA hopscope) and end the "
                "URL with ?options=-csearch_path%3Dhopscope"
            )
        raise WrongDatabaseError(
            f"the database {name} belongs to another program: it has tables that are not "
            f"Hopscope's ({named}); {advice}"
        )


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config
