"""The password of a database is in nothing that is printed, logged, raised or stored."""

import logging

import pytest
from sqlalchemy import select

from hopscope.cli.main import main
from hopscope.runtime.errors import StoreError, UsageError
from hopscope.store.database.location import resolve
from hopscope.store.database.schema import metadata
from hopscope.store.store import Store
from tests.store.conftest import PASSWORD
from tests.store.run_examples import a_run, credits_of

on_postgresql = pytest.mark.parametrize("url", ["postgresql"], indirect=True)

COMMANDS = ["ls", "show", "doctor", "db upgrade", "db check", "db vacuum", "db export -", "show no"]


@on_postgresql
def test_commands_and_logs_say_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="sqlalchemy")
    monkeypatch.setenv("HOPSCOPE_DB", url)
    with Store.open() as store:
        store.save(a_run())
        store.save_credits(credits_of(a_run()))
    for command in COMMANDS:
        try:
            main(command.split())
        except SystemExit as stop:
            assert stop.code in (0, None) or command == "show no"  # noqa: PT017  # no error
    said = capsys.readouterr()
    assert "run-1" in said.out
    assert "no run 'no' in postgresql+psycopg://postgres:***@127.0.0.1" in said.err
    assert "select" in caplog.text.lower()
    for text in (said.out, said.err, caplog.text):
        assert PASSWORD not in text


@on_postgresql
def test_no_row_holds_it(url: str) -> None:
    with Store.open(url) as store:
        store.save(a_run())
        with store._database.reading() as connection:
            rows = [str(connection.execute(select(t)).all()) for t in metadata.tables.values()]
    assert any("Town 3" in row for row in rows)
    assert not any(PASSWORD in row for row in rows)


@on_postgresql
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [(PASSWORD, "wrong-word", StoreError), ("127.0.0.1", "127.0.0.1:x", UsageError)],
)
def test_errors_name_the_database_without_it(
    url: str, old: str, new: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        Store.open(url.replace(old, new))
    assert PASSWORD not in str(caught.value)
    assert "wrong-word" not in str(caught.value)


def test_an_at_sign_in_a_password_does_not_end_it() -> None:
    """What follows it was taken for the host, and shown."""
    with pytest.raises(UsageError, match="%40") as caught:
        Store.open("postgresql://me:kept@itself@127.0.0.1/runs")
    assert "itself" not in str(caught.value)
    assert resolve("postgresql://me:kept%40itself@127.0.0.1/runs").password == "kept@itself"
    assert resolve("postgresql://me%40server:pw@127.0.0.1/runs").username == "me@server"


@pytest.mark.parametrize(
    "place",
    [
        "host=127.0.0.1 port=1 password=s3cret",
        "dbname=runs password='s3cret'",
        "password=s3cret",
        "postgresql:/me:s3cret@h/db",
        "PostgreSQL+psycopg:me:s3cret@h/db",
        "postgres:s3cret",
        "mysql:/me:s3cret@h/db",
        "me:s3cret@h/db",
    ],
)
def test_a_connection_in_another_form_is_no_file(
    place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was taken for the name of a file, and printed with its password."""
    with pytest.raises(SystemExit) as ended:
        main(["ls", "--db", place])
    assert ended.value.code == 2
    said = "".join(capfd.readouterr())
    assert "give a file, sqlite:///FILE or postgresql://USER@HOST/NAME" in " ".join(said.split())
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "place",
    ["runs.db", "./host=a", "a/b:c@d.db", r"C:\me@home\runs.db", "~nobody-here/runs.db", "a=b"],
)
def test_other_names_are_files(place: str) -> None:
    assert resolve(place).database == place


@on_postgresql
def test_it_need_not_stand_in_the_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with Store.open(url.replace(f":{PASSWORD}@", "@")) as store:
        assert store.runs() == []
