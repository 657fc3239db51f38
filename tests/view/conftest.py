"""The database that the tests of the view share."""

from pathlib import Path

import pytest

from tests.view import experiment


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment.database(tmp_path_factory.mktemp("view"))
