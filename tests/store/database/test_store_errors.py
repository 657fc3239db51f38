"""A database that cannot be used says which, why and what to do, and never a password."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from hopscope.runtime.errors import MissingExtraError, StoreError, UsageError
from hopscope.store.database import location, migrate
from hopscope.store.database.database import Database
from hopscope.store.database.location import default_url, display, resolve
from hopscope.store.store import Store
from tests.store.run_examples import a_run, credits_of


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write anywhere, so be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot use the database .*file/x\.db.*--db"):
        Store.open(tmp_path / "file" / "x.db")


def test_a_folder_given_as_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is a folder: name a file in it with --db"):
        Store.open(tmp_path)


def test_a_folder_that_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    tmp_path.chmod(0o555)
    with unprivileged(), pytest.raises(StoreError, match=r"not writable.*--db or HOPSCOPE_DB"):
        Store.open(tmp_path / "x.db")
    monkeypatch.delenv("HOPSCOPE_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with unprivileged(), pytest.raises(StoreError, match=r"cannot use .*--db or HOPSCOPE_DB"):
        Store.open()


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """A folder that can be read only, as on a read-only mount."""
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(0o755)
    folder.chmod(0o555)
    try:
        with unprivileged():
            yield
    finally:
        folder.chmod(0o755)


def test_a_read_only_database_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "100%.db"
    with Store.open(file) as store:
        store.save(a_run())
        store.save_credits(credits_of(a_run()))
    before = sorted(path.name for path in tmp_path.iterdir())
    with unwritable(tmp_path):
        with Store.open(file, create=False, reading=True) as store:
            assert store.load("run-1") == a_run()
            assert store.verify() == []
            assert store.name == str(file)
            with pytest.raises(StoreError, match="copy it, with the files beside it"):
                store.save(a_run("run-2"))
        with pytest.raises(StoreError, match="not writable"):
            Store.open(file, create=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_read_only_database_with_a_log_beside_it_is_read_whole(tmp_path: Path) -> None:
    """The log holds what is not yet in the file: to leave it out would lose runs silently."""
    file = tmp_path / "runs.db"
    with Store.open(file) as writer:
        writer.save(a_run())
        for path in tmp_path.iterdir():
            path.chmod(0o444)
        with unwritable(tmp_path), Store.open(file, create=False, reading=True) as store:
            assert store.load("run-1") == a_run()
        for path in tmp_path.iterdir():
            path.chmod(0o644)


def test_an_older_read_only_database_is_refused(tmp_path: Path) -> None:
    database = Database(resolve(tmp_path / "runs.db"))
    database.prepare()
    with database.migrating() as connection:
        migrate.run_alembic(connection, "m006")
    database.close()
    with unwritable(tmp_path), pytest.raises(StoreError, match=r"older Hopscope .* copy it"):
        Store.open(tmp_path / "runs.db", create=False, reading=True)


def test_a_file_that_is_not_writable(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    Store.open(file).close()
    with (
        Store.open(f"sqlite:///file:{file}?mode=ro&uri=true") as store,
        pytest.raises(StoreError, match=r"not writable.*--db or HOPSCOPE_DB"),
    ):
        store.save(a_run())


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("These are only notes. " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt is not a database: choose another"):
        Store.open(file)
    assert file.read_text().startswith("These are only notes.")


def test_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "x.db"
    with Store.open(file) as store:
        store.save(a_run())
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)
    with pytest.raises(StoreError, match=r"x\.db"):
        Store.open(file).load("run-1")


def test_a_server_that_does_not_answer_is_named_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://me:secret@127.0.0.1:9/runs?connect_timeout=2")
    message = str(caught.value)
    assert "me:***@127.0.0.1:9/runs" in message
    assert "secret" not in message


def test_a_database_that_the_server_does_not_have(postgresql: str) -> None:
    with pytest.raises(StoreError, match='database "nowhere" does not exist'):
        Store.open(f"{postgresql}/nowhere")


@pytest.mark.parametrize(
    "url", ["mysql://me:secret@host/x", "post gres://me:secret@host:x/y", "://"]
)
def test_other_urls_are_refused_with_the_forms_there_are(url: str) -> None:
    with pytest.raises(UsageError, match="postgresql://USER@HOST/NAME") as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("driver", ["postgresql+psycopg2", "postgresql+nodriver", "sqlite+no"])
def test_other_drivers_are_refused(driver: str) -> None:
    """Whether they are installed, is missing or does not exist."""
    with pytest.raises(UsageError, match=rf"no support for the driver {re.escape(driver)}: give"):
        Store.open(f"{driver}://me:secret@host/x")


def test_plain_postgresql_takes_psycopg_or_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for plain in ("postgresql://host/x", "postgres://host/x"):
        assert resolve(plain).drivername == "postgresql+psycopg"
    monkeypatch.setattr(location, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"hopscope\[postgres\]"):
        resolve("postgresql://host/x")


def test_a_query_may_hold_a_password_and_is_not_shown() -> None:
    shown = display(resolve("postgresql://host/x?user=me&password=secret"))
    assert shown == "postgresql+psycopg://host/x"


def test_the_default_is_a_file_in_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOPSCOPE_DB", raising=False)
    assert Path(default_url()).parts[-2:] == ("hopscope", "hopscope.db")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    with Store.open() as store:
        assert Path(store.name) == tmp_path / "new" / "hopscope" / "hopscope.db"
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "own" / "mine.db"))
    with Store.open() as store:
        store.save(a_run())
        assert store.name == default_url() == str(tmp_path / "own" / "mine.db")
    with Store.open(tmp_path / "own" / "mine.db") as store:
        assert store.latest() == a_run()


CHANGES = {
    "passages": "UPDATE passages SET title = 'other' WHERE number = 1",
    "listings": "UPDATE listings SET source = 'other' WHERE number = 1",
    "texts": "UPDATE texts SET text = 'other' WHERE number = 1",
    "prompts": "DELETE FROM messages WHERE prompt = 1 AND position = 1",
    "provenances": "UPDATE provenances SET entailment = 'other'",
    "runs": "UPDATE runs SET status = 'fine'",
}


@pytest.mark.parametrize("table", CHANGES)
def test_verify_finds_what_was_changed_behind_its_back(store: Store, table: str) -> None:
    store.save(a_run())
    store.save_credits(credits_of(a_run()))
    assert store.verify() == []
    with store._database.writing() as connection:
        connection.execute(text(CHANGES[table]))
    assert [fault.table for fault in store.verify()] == [table]


def test_a_run_that_no_longer_makes_sense_is_an_error_of_ours(store: Store) -> None:
    store.save(a_run())
    with store._database.writing() as connection:
        connection.execute(text(CHANGES["runs"]))
    with pytest.raises(StoreError, match="is damaged: a row has changed since it was written"):
        store.load("run-1")


def test_references_are_enforced(store: Store) -> None:
    store.save(a_run())
    with pytest.raises(StoreError, match=r"(?i)foreign key"), store._database.writing() as rows:
        rows.execute(text("DELETE FROM passages"))
    with pytest.raises(StoreError, match=r"(?i)check"), store._database.writing() as rows:
        rows.execute(text("UPDATE placements SET score = 1 WHERE role = 'new'"))
    assert store.load("run-1") == a_run()
