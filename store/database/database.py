"""Connections and transactions.

Invariants: every write runs in a transaction that is the only writer from its first statement
(SQLite: BEGIN IMMEDIATE), so that it never fails half-way for a lock; every read sees one
snapshot; every database exception becomes a `StoreError` that names the database.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from pydantic import ValidationError
from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError, StatementError

from hopscope.runtime.errors import StoreError, UnstorableError, UsageError, WrongDatabaseError
from hopscope.runtime.validation import problem
from hopscope.store.database.columns import DamagedBytesError
from hopscope.store.database.location import display, unchanging

LOCK_SECONDS = 60
"""Time limit for a writer that waits for other writers."""

_WRITE = "hopscope_write"
_SMALLEST = 512
"""Bytes of the smallest page of a database."""
_NO_PATH = (errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
"""Errors of paths that no file can have."""


class Database:
    """An engine with the two kinds of transaction that the store uses. One per process: open it
    after forking, not before."""

    def __init__(self, url: URL, *, reading: bool = False) -> None:
        """With `reading`, a read-only SQLite file is accepted."""
        self.name = display(url)
        self._path = _file(url)
        self.read_only = reading and self._path is not None and _unwritable(self._path)
        """Whether the file is read-only, so that it cannot be prepared or upgraded."""
        if self.read_only and self._path:
            with self._boundary():
                url = unchanging(url, self._path)
        arguments: dict[str, Any] = {}
        if url.get_backend_name() == "sqlite":
            arguments = {"timeout": LOCK_SECONDS}
        elif "connect_timeout" not in url.query:
            arguments = {"connect_timeout": 10}
        pool: dict[str, Any] = {}
        if url.get_backend_name() == "sqlite" and self._path is None:
            # A database in memory is its connection: all threads use the one, in turn.
            arguments["check_same_thread"] = False
            pool = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
        with self._boundary():
            self._engine: Engine = create_engine(
                url, connect_args=arguments, hide_parameters=True, **pool
            )
        if url.get_backend_name() == "sqlite":
            event.listen(self._engine, "connect", _configure)
            event.listen(self._engine, "begin", _begin)

    @property
    def missing(self) -> bool:
        """Whether it is a SQLite file that does not exist."""
        with self._boundary():
            return self._path is not None and not self._path.exists()

    def prepare(self, *, make_folder: bool = False) -> None:
        """Switch a SQLite file to write-ahead logging. `make_folder` makes its folder if missing.

        Raises:
            UsageError: there is no such folder.
            WrongDatabaseError: it is another file.
            StoreError: the database cannot be reached or used.
        """
        with self._boundary():
            if self._path and make_folder:
                self._path.parent.mkdir(parents=True, exist_ok=True)
            elif self._path and not self._path.parent.exists():
                raise UsageError(
                    f"{self._path}: there is no folder {self._path.parent}; make it, or give "
                    "another place"
                )
            elif self._path and not self._path.parent.is_dir():
                raise WrongDatabaseError(
                    f"cannot use the database {self.name}: {self._path.parent} is no folder; "
                    "choose another place with --db or HOPSCOPE_DB"
                )
            elif self._path and _is_other_file(self._path):
                raise WrongDatabaseError(self._no_database())
            with self._engine.connect() as connection:
                if self._path:
                    _write_ahead(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._boundary(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end, or undone when the block raises."""
        with self._boundary(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITE: True})
            with connection.begin():
                yield connection

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """Like `writing`, for changes of tables. SQLite changes a table by dropping and creating it
        again; with foreign keys on, that would delete the rows that refer to it."""
        with self._boundary(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITE: True})
            driver = connection.connection.driver_connection
            if isinstance(driver, sqlite3.Connection):
                driver.execute("PRAGMA foreign_keys = OFF")
            try:
                with connection.begin():
                    yield connection
            finally:
                if isinstance(driver, sqlite3.Connection):
                    driver.execute("PRAGMA foreign_keys = ON")

    @contextmanager
    def outside(self) -> Iterator[Connection]:
        """A connection without a transaction, for statements that the database refuses in one."""
        with self._boundary(), self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        try:
            yield
        except ValidationError as error:
            reason = f"a row has changed since it was written: {problem(error.errors()[0])}"
            raise StoreError(f"the database {self.name} is damaged: {reason}") from error
        except DamagedBytesError as error:
            raise StoreError(f"the database {self.name} is damaged: {error}") from error
        except (SQLAlchemyError, sqlite3.Error, OSError, OverflowError, UnicodeError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> StoreError:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
        reason = " ".join(str(cause).split())
        if self._path and self._path.is_dir():
            return WrongDatabaseError(
                f"{self.name} is a folder: name a file in it with --db or HOPSCOPE_DB"
            )
        if "unable to open" in reason or "readonly" in reason:
            advice = (
                "it or its folder is not writable: copy it, with the files beside it, to where you "
                "can write, or choose another with --db or HOPSCOPE_DB"
            )
            return StoreError(f"cannot use the database {self.name} ({reason}): {advice}")
        if isinstance(error, OSError):
            advice = "choose another place with --db or HOPSCOPE_DB"
            kind = WrongDatabaseError if error.errno in _NO_PATH else StoreError
            return kind(f"cannot use the database {self.name} ({reason}): {advice}")
        if "file is not a database" in reason:
            return WrongDatabaseError(self._no_database())
        kind = UnstorableError if _of_values(error) else StoreError
        return kind(f"the database {self.name} failed: {reason}")

    def _no_database(self) -> str:
        return f"{self.name} is not a database: choose another with --db or HOPSCOPE_DB"


def _is_other_file(path: Path) -> bool:
    """Whether the file is too short for a database: SQLite would take it for empty and overwrite
    it. It is not read, since closing a file gives up all locks that this process has on it."""
    return path.is_file() and 0 < path.stat().st_size < _SMALLEST


def _of_values(error: Exception) -> bool:
    """Whether a value to be written caused the error: it is too large, or not text."""
    cause = error.orig if isinstance(error, StatementError) and error.orig else error
    return isinstance(error, DataError) or isinstance(cause, OverflowError | UnicodeError)


def _file(url: URL) -> Path | None:
    """The file of a SQLite database; None in memory, and for `file:` names."""
    name = url.database or ":memory:"
    if url.get_backend_name() != "sqlite" or name == ":memory:" or name.startswith("file:"):
        return None
    return Path(name)


def _unwritable(path: Path) -> bool:
    """Whether the file exists, and it or its folder is read-only."""
    try:
        if not path.exists():
            return False
    except OSError:  # not a file name; opening it reports the error
        return False
    effective = os.access in os.supports_effective_ids
    return not all(
        os.access(each, os.W_OK, effective_ids=effective) for each in (path, path.parent)
    )


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # the driver's own BEGINs come too late; `_begin` does it
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(_WRITE) else "BEGIN")


def _write_ahead(connection: Connection) -> None:
    """SQLite does not wait for locks when it changes the journal mode, so this does."""
    driver = connection.connection.driver_connection
    assert driver is not None
    deadline = monotonic() + LOCK_SECONDS
    while True:
        try:
            if driver.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                driver.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > deadline:
                raise
            sleep(0.02)
