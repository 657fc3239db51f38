"""The states of runs on disk, so that a killed run can continue: LangGraph's SQLite checkpoints.

Invariant: a state that is read equals the state that was written: records stay records and tuples
stay tuples. Msgpack alone turns tuples into lists, and a resumed workflow would meet types that it
never meets otherwise. Only our own records are ever built from a file.
"""

import sqlite3
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from hopscope.runtime import types
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record

TABLE = "hopscope_runs"
"""Table of the runs with their settings, beside LangGraph's tables."""
HASHED = "+sha256"
"""Suffix of the kind of a value that begins with its hash."""
HASH_BYTES = 32


class Tuple(deque[Any]):
    """The written form of a tuple: LangGraph writes the class name of a deque, but not of a
    tuple."""


def _pack(value: Any) -> Any:
    if type(value) is tuple:
        return Tuple(_pack(item) for item in value)
    if type(value) is list:
        return [_pack(item) for item in value]
    if type(value) is dict:
        return {key: _pack(item) for key, item in value.items()}
    return value


def _unpack(value: Any) -> Any:
    if type(value) is Tuple:
        return tuple(_unpack(item) for item in value)
    if type(value) is list:
        return [_unpack(item) for item in value]
    if type(value) is dict:
        return {key: _unpack(item) for key, item in value.items()}
    return value


class Serializer(JsonPlusSerializer):
    """LangGraph's serializer, extended: it knows our records, keeps tuples, and detects damage.
    LangGraph itself returns another value where it cannot read one."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(_pack(obj))
        return kind + HASHED, sha256(data).digest() + data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data
        if kind.endswith(HASHED):  # files of earlier versions have no hashes
            kind, expected = kind.removesuffix(HASHED), content[:HASH_BYTES]
            content = content[HASH_BYTES:]
            if sha256(content).digest() != expected:
                raise ValueError("a state does not match its hash")
        return _unpack(super().loads_typed((kind, content)))


def serializer() -> Serializer:
    """A serializer that knows all record types that are loaded now, those of a workflow too."""
    known = [(kind.__module__, kind.__qualname__) for kind in _kinds(Record)]
    # Files of earlier versions, in which the records were one module.
    before = [(types.__name__, name) for name in types.__all__]
    return Serializer(allowed_msgpack_modules=[*known, *before, (__name__, Tuple.__qualname__)])


def _kinds(kind: type[Record]) -> list[type[Record]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


class LastState(SqliteSaver):
    """LangGraph's saver, reduced to the last state of each run. Each state holds all steps so far,
    and only the last is ever read: a file of all would grow with the square of the steps."""

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The last state of a run.

        Raises:
            UsageError: the file is damaged.
        """
        with whole():
            return super().get_tuple(config)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        saved = super().put(config, checkpoint, metadata, new_versions)
        # Ids grow with time. A run that is killed before this line has two states for a while.
        now = saved["configurable"]
        older = (str(now["thread_id"]), now["checkpoint_ns"], now["checkpoint_id"])
        with self.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                cursor.execute(
                    f"DELETE FROM {table} "
                    "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?",
                    older,
                )
        return saved


@contextmanager
def whole() -> Iterator[None]:
    """Raise a UsageError if the block reads a damaged file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise UsageError(
                "another process is using the checkpoints: wait until it ends, then try again"
            ) from error
        raise _damaged(error) from error
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError) as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> UsageError:
    reason = " ".join(str(error).split())
    return UsageError(
        f"the checkpoints are damaged ({reason}): begin the run again, with another file"
    )


class Checkpoints:
    """A file with the states and settings of any number of runs.

    with Checkpoints.open(Path("runs.checkpoints")) as checkpoints:
        run(workflow, question, deps, checkpointer=checkpoints.saver, run_id="...")
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.saver = LastState(connection, serde=serializer())
        """The `checkpointer` of `runtime.execution.run.run`."""
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """Open a file; with `create`, make it if it does not exist.

        Raises:
            UsageError: the file does not exist, or is no file of checkpoints.
        """
        if not create and not path.is_file():
            raise UsageError(
                f"no checkpoints at {path}: give the file that a run was given as its checkpoint "
                "(--checkpoint)"
            )
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(path, check_same_thread=False)
            tables = {
                str(name)
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            }
            if tables and TABLE not in tables:
                raise sqlite3.DatabaseError("it is another program's database")
            opened = cls(connection)
            opened.saver.setup()
            with opened.saver.cursor() as cursor:
                cursor.execute(
                    f"CREATE TABLE IF NOT EXISTS {TABLE} "
                    "(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, settings TEXT NOT NULL)"
                )
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise UsageError(
                f"{path} cannot be used for checkpoints ({error}): choose another file"
            ) from None
        return opened

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, settings: str) -> str:
        """Save the settings of a new run; returns its id."""
        run_id = uuid.uuid4().hex
        with self.saver.cursor() as cursor:
            row = (run_id, settings)
            cursor.execute("INSERT INTO hopscope_runs (id, settings) VALUES (?, ?)", row)
        return run_id

    def find(self, run: str | None = None) -> tuple[str, str]:
        """Id and settings of the run whose id begins with `run`, or of the latest run.

        Raises:
            UsageError: no run matches, or several do.
        """
        query = "SELECT id, settings FROM hopscope_runs"
        with whole(), self.saver.cursor(transaction=False) as cursor:
            if run is None:
                rows = cursor.execute(f"{query} ORDER BY number DESC LIMIT 1").fetchall()
            else:
                beginning = (len(run), run)
                rows = cursor.execute(f"{query} WHERE substr(id, 1, ?) = ?", beginning).fetchall()
        if not rows:
            raise UsageError(f"no run {run} among the checkpoints" if run else "no runs there")
        if len(rows) > 1:
            raise UsageError(f"{len(rows)} runs begin with {run}: give more of the id")
        [(run_id, settings)] = rows
        return run_id, settings
