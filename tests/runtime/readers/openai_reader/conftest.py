"""Servers on this machine with a real model, and the same model in transformers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.readers import hf
from tests import models
from tests.servers import openai_api
from tests.servers.openai_api import Service


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOPSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture(scope="module")
def local(folder: Path) -> Any:
    return hf.build(model=str(folder), device="cpu")


@pytest.fixture
def plain(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder)) as service:
        yield service


@pytest.fixture
def vllm(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder, "vllm")) as service:
        yield service
