"""The location of the database: by default one SQLite file in the user's data folder,

    platformdirs.user_data_dir("hopscope")/hopscope.db

which on Linux is ~/.local/share/hopscope/hopscope.db. `HOPSCOPE_DB` names another.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hopscope.runtime.errors import MissingExtraError, UsageError

ENVIRONMENT = "HOPSCOPE_DB"


def resolve(location: str | Path | None) -> URL:
    """The URL of a database given as a path, as a URL or, when None, by default.

    Plain `postgresql://` and `postgres://` take the driver psycopg.

    Raises:
        UsageError: a URL that cannot be read or names another kind of database, or a connection in
            another form, such as `host=127.0.0.1 password=…`.
        MissingExtraError: PostgreSQL without its driver.
    """
    place = str(location or os.environ.get(ENVIRONMENT) or "")
    if not place:
        return default()
    if "://" not in place:
        if _connects(place):  # it may hold a password: not repeated
            raise UsageError(
                "the database is given in the form of a connection, not of a file or a URL: "
                f"{_FORMS}; begin the name of a file like that with ./"
            )
        # A path would lose the ./ that tells a name from a connection.
        return URL.create("sqlite", database=os.path.expanduser(place))
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):  # the latter of a port that is no number
        raise UsageError(f"the database URL cannot be read: {_FORMS}") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise UsageError(f"no support for {backend} databases: {_FORMS}")
    if backend == "postgresql" and "@" in f"{url.host}{url.database}":
        # Of two, the first ends the password: what follows it would be shown as the host.
        raise UsageError("a database URL has one @: write one in a name or a password as %40")
    if url.drivername not in _DRIVERS:
        raise UsageError(f"no support for the driver {url.drivername}: {_FORMS}")
    if backend == "sqlite" and (url.host or url.username or url.port):
        raise UsageError(f"the database URL cannot be read, as sqlite has no host: {_FORMS}")
    if backend == "postgresql" and find_spec("psycopg") is None:
        raise MissingExtraError("PostgreSQL", "postgres")
    return url


def _connects(place: str) -> bool:
    """Whether what is no URL was meant to connect: settings of PostgreSQL's library, a URL without
    its slashes, or a user with a password."""
    scheme, colon, _ = place.partition(":")
    user, at, _ = place.partition("@")
    return bool(
        any(word.partition("=")[0] in _SETTINGS for word in place.split() if "=" in word)
        or (colon and scheme.partition("+")[0].lower() in _KINDS)
        or (at and len(scheme) > 1 and ":" in user and not {"/", os.sep} & set(user))
    )


def default() -> URL:
    """The file in the user's data folder."""
    from platformdirs import user_data_path

    file = user_data_path("hopscope", appauthor=False) / "hopscope.db"
    return URL.create("sqlite", database=str(file))


def unchanging(url: URL, path: Path) -> URL:
    """The URL that opens a read-only SQLite file in a read-only folder.

    In write-ahead mode SQLite creates files beside a database, unless the URL says `immutable`. A
    remaining log file holds a part of the data and must be read.
    """
    log = path.with_name(f"{path.name}-wal")
    pending = log.exists() and log.stat().st_size > 0
    query = {"mode": "ro", "uri": "true"} | ({} if pending else {"immutable": "1"})
    return url.set(database=f"file:{quote(str(path.absolute()))}", query=query)


def display(url: URL) -> str:
    """The database's name in messages: without password and query, which may hold a password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.set(query={}).render_as_string(hide_password=True)


def default_url() -> str:
    """The name of the default database in messages."""
    return display(resolve(None))


_SETTINGS = frozenset(("dbname", "host", "hostaddr", "password", "port", "service", "user"))
_KINDS = ("mariadb", "mysql", "postgres", "postgresql", "sqlite")
_DRIVERS = ("sqlite", "sqlite+pysqlite", "postgresql+psycopg")
_FORMS = "give a file, sqlite:///FILE or postgresql://USER@HOST/NAME"
