"""A server of the OpenAI API with a small model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import models
from tests.servers import openai_api
from tests.servers.openai_api import Service


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture
def kind() -> str:
    """The kind of server; a module may have its own."""
    return "plain"


@pytest.fixture
def server(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENAI_API_KEY", "HOPSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with openai_api.running(Service(folder, kind)) as service:
        yield service
