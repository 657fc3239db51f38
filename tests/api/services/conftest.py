"""A stored experiment, and services on loopback."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.services import stored_experiment
from tests.servers import langfuse_api, mlflow_api, opik_api
from tests.servers.contract import serving

VARIABLES = (
    "LANGFUSE_BASE_URL",
    "LANGFUSE_HOST",
    "LANGFUSE_PUBLIC_KEY",
    "LANGFUSE_SECRET_KEY",
    "MLFLOW_EXPERIMENT_NAME",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_URI",
    "MLFLOW_TRACKING_USERNAME",
    "OPIK_API_KEY",
    "OPIK_PROJECT_NAME",
    "OPIK_URL_OVERRIDE",
    "OPIK_WORKSPACE",
)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("stored") / "runs.db"
    stored_experiment.make(file)
    return file


@pytest.fixture
def filled(original: Path, tmp_path: Path) -> Path:
    """The database with the experiment."""
    return Path(shutil.copy(original, tmp_path))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without addresses and keys."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def langfuse(bare: pytest.MonkeyPatch) -> Iterator[langfuse_api.Langfuse]:
    api = langfuse_api.Langfuse()
    with serving(api) as url:
        bare.setenv("LANGFUSE_BASE_URL", url)
        bare.setenv("LANGFUSE_PUBLIC_KEY", langfuse_api.PUBLIC)
        bare.setenv("LANGFUSE_SECRET_KEY", langfuse_api.SECRET)
        yield api


@pytest.fixture
def mlflow(bare: pytest.MonkeyPatch) -> Iterator[mlflow_api.MLflow]:
    api = mlflow_api.MLflow()
    with serving(api) as url:
        bare.setenv("MLFLOW_TRACKING_URI", url)
        bare.setenv("MLFLOW_TRACKING_TOKEN", mlflow_api.TOKEN)
        yield api


@pytest.fixture
def opik(bare: pytest.MonkeyPatch) -> Iterator[opik_api.Opik]:
    api = opik_api.Opik()
    with serving(api) as url:
        bare.setenv("OPIK_URL_OVERRIDE", f"{url}/api")
        bare.setenv("OPIK_API_KEY", opik_api.KEY)
        bare.setenv("OPIK_WORKSPACE", opik_api.WORKSPACE)
        yield api
