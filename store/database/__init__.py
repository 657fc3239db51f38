"""The database: connections, tables, location, migration, maintenance."""
