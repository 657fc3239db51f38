"""A server over the shared database, without a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hopscope.store.store import Store
from hopscope.view.server.app import application
from hopscope.view.server.guarding import names

PORT = 7717
ADDRESS = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="session")
def store(database: Path) -> Iterator[Store]:
    with Store.open(database) as opened:
        yield opened


@pytest.fixture(scope="session")
def client(store: Store) -> TestClient:
    app = application(store, hosts=names("127.0.0.1", PORT))
    return TestClient(app, base_url=ADDRESS, follow_redirects=False)


@pytest.fixture(scope="session")
def run(store: Store) -> str:
    """The id of an IRCoT run of the experiment."""
    items = store.experiments.items("towns")
    return next(item.outcome.run_id for item in items if item.arm == "ircot" and item.outcome)
