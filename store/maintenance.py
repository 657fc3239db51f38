"""How large a database is, and how it is made as small and quick as it can be."""

from sqlalchemy import Connection, text

from hopscope.store.database import Database


def read_size(connection: Connection) -> int:
    """Bytes of all tables and indexes, free pages included."""
    if connection.dialect.name == "postgresql":
        query = "SELECT pg_database_size(current_database())"
    else:
        query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(connection.execute(text(query)).scalar_one())


def vacuum(database: Database) -> None:
    """Give back what deleted rows took, and on PostgreSQL let the planner look at what there is.

    SQLite writes the file anew and needs as much space again meanwhile. Others can go on reading;
    who writes waits.
    """
    with database.outside() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("VACUUM (ANALYZE)"))
            return
        connection.execute(text("VACUUM"))
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
