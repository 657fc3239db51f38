"""Empty and older databases become current; newer and foreign ones are refused."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Connection, create_engine, inspect, text

from hopscope.runtime.errors import StoreError
from hopscope.store.database import migrate
from hopscope.store.database.database import Database
from hopscope.store.database.location import resolve
from hopscope.store.database.schema import metadata
from hopscope.store.store import Store
from tests.store.run_examples import a_run

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "m999"
down_revision = "{head}"
branch_labels = depends_on = None


def upgrade():
    on_sqlite = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("runs", recreate="always" if on_sqlite else "auto") as runs:
        runs.add_column(sa.Column("extra", sa.Text()))
"""


def scripts() -> ScriptDirectory:
    return ScriptDirectory(str(migrate.FOLDER))


def test_the_known_head_is_the_newest_file() -> None:
    assert scripts().get_heads() == [migrate.HEAD]


def test_migrated_tables_are_those_of_the_schema(store: Store) -> None:
    with store._database.reading() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"version_table": migrate.VERSION_TABLE, "compare_server_default": True},
        )
        assert compare_metadata(context, metadata) == []
        assert checks(connection) == {
            (table.name, constraint.name)
            for table in metadata.tables.values()
            for constraint in table.constraints
            if isinstance(constraint, CheckConstraint)
        }


def checks(connection: Connection) -> set[tuple[str, object]]:
    """What `compare_metadata` does not look at."""
    inspector = inspect(connection)
    tables = metadata.tables
    return {(table, c["name"]) for table in tables for c in inspector.get_check_constraints(table)}


def test_on_sqlite_the_tables_are_the_same_to_the_letter(tmp_path: Path) -> None:
    """Clustered tables, cascades and collations too; only the order of columns and constraints
    may differ, as later columns come last."""

    def statements(connection: Connection) -> dict[str, list[str]]:
        query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        between = re.compile(r"\s*,\s*|\s*\n\s*|\s*\)$")
        found = {
            name: sorted(filter(None, between.split(sql)))
            for name, sql in connection.execute(query)
        }
        return {name: lines for name, lines in found.items() if name != migrate.VERSION_TABLE}

    with Store.open(tmp_path / "migrated.db") as store, store._database.reading() as connection:
        migrated = statements(connection)
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        assert statements(connection) == migrated
    engine.dispose()


@pytest.mark.parametrize("found", [script.revision for script in scripts().walk_revisions()])
def test_an_older_database_is_upgraded_and_keeps_its_runs(url: str, found: str) -> None:
    """For each revision there has been: its tables, then this version's `open`."""
    database = Database(resolve(url))
    database.prepare()
    with database.migrating() as connection:
        migrate.run_alembic(connection, found)
    database.close()
    with Store.open(url) as store:
        store.save(a_run())
    with Store.open(url) as store:
        assert store.load("run-1") == a_run()
        with store._database.reading() as connection:
            assert migrate.revision(connection) == migrate.HEAD


def test_an_upgrade_keeps_what_is_there(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later revision, made up here, makes the table of runs anew; the steps that refer to it
    would go with the old one if foreign keys were on."""
    with Store.open(url) as store:
        store.save(a_run())
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    shipped = migrate.FOLDER
    for path in (shipped / "env.py", *(shipped / "versions").glob("m*.py")):
        (folder / path.relative_to(shipped)).write_text(path.read_text())
    (folder / "versions" / "m999_next.py").write_text(NEXT.format(head=migrate.HEAD))
    monkeypatch.setattr(migrate, "FOLDER", folder)
    monkeypatch.setattr(migrate, "HEAD", "m999")
    with Store.open(url) as store:
        assert store.load("run-1") == a_run()
        assert store.verify() == []
        with store._database.reading() as connection:
            assert connection.execute(text("SELECT extra FROM runs")).all() == [(None,)]


def test_a_newer_database_is_refused(url: str) -> None:
    with Store.open(url) as store, store._database.writing() as connection:
        connection.execute(text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = 'm777'"))
    with pytest.raises(
        StoreError, match=rf"newer Hopscope .*m777.*knows up to {migrate.HEAD}.*upgrade"
    ):
        Store.open(url)


def test_another_program_s_tables_are_left_alone(url: str) -> None:
    database = Database(resolve(url))
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE runs (their_own TEXT)"))
    with pytest.raises(StoreError, match=r"another program: .*\(runs\)"):
        Store.open(url)
    database.close()


def test_a_database_of_another_program_is_left_as_it_is(url: str) -> None:
    """22 tables were written beside theirs, unless one had the name of ours."""
    database = Database(resolve(url))
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (address TEXT)"))
    with pytest.raises(StoreError, match=r"another program: .*\(bookmarks\); choose another"):
        Store.open(url)
    with database.reading() as connection:
        assert inspect(connection).get_table_names() == ["bookmarks"]
    database.close()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_on_postgresql_a_schema_of_its_own_will_do(url: str) -> None:
    database = Database(resolve(url))
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (address TEXT)"))
        connection.execute(text("CREATE SCHEMA hopscope"))
    with Store.open(f"{url}?options=-csearch_path%3Dhopscope") as store:
        store.save(a_run())
        assert store.load("run-1") == a_run()
    with database.reading() as connection:
        assert inspect(connection).get_table_names() == ["bookmarks"]
        assert "runs" in inspect(connection).get_table_names(schema="hopscope")
    database.close()


def test_a_database_of_ours_may_have_other_tables(url: str) -> None:
    with Store.open(url) as store, store._database.writing() as connection:
        connection.execute(text("CREATE TABLE bookmarks (address TEXT)"))
    with Store.open(url) as store:
        store.save(a_run())
        assert store.load("run-1") == a_run()


def test_opening_a_current_database_loads_neither_alembic_nor_torch(url: str) -> None:
    Store.open(url).close()
    code = (
        "import sys; from hopscope.store.store import Store; Store.open(sys.argv[1]).runs();"
        "print(sorted({'alembic', 'torch', 'langgraph', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
