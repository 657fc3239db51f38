"""Fresh databases: SQLite files, and a PostgreSQL server started for the session where its
programs can be found."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from hopscope.store.store import Store

settings.register_profile(
    "store", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25
)
settings.load_profile("store")


def _programs() -> Path | None:
    """The folder of PostgreSQL's server programs, which Debian keeps off the PATH."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found:
        folders.append(Path(found).resolve().parent)
    ready = [f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()]
    return ready[-1] if ready else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a running server, `127.0.0.1:PORT`; its superuser is `postgres`."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server programs (apt-get install postgresql)")
    user = "postgres" if os.getuid() == 0 else None  # the server refuses to run as root
    folder, port = Path(tempfile.mkdtemp(prefix="hopscope-pg-")), _free_port()
    if user:
        try:
            shutil.chown(folder, user)
        except LookupError:
            shutil.rmtree(folder)
            pytest.skip("PostgreSQL cannot run as root and there is no user postgres")

    def call(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    call("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
    flags = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", flags, "start")
    try:
        yield f"127.0.0.1:{port}"
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
    with psycopg.connect(f"postgresql://postgres@{address}/postgres", autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield f"postgresql://postgres@{address}/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened
