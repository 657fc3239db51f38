"""The size of a database, and its compaction."""

from sqlalchemy import Connection, text

from hopscope.store.database.database import Database


def read_size(connection: Connection) -> int:
    """Bytes of all tables and indexes, free pages included."""
    if connection.dialect.name == "postgresql":
        query = "SELECT pg_database_size(current_database())"
    else:
        query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(connection.execute(text(query)).scalar_one())


def vacuum(database: Database) -> None:
    """Free the space of deleted rows, and on PostgreSQL update the planner's statistics.

    SQLite rewrites the file and needs as much space again meanwhile. Other processes can read;
    writers wait.
    """
    with database.outside() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("VACUUM (ANALYZE)"))
            return
        connection.execute(text("VACUUM"))
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
