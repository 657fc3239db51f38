"""Commands over a model on a server that behaves as servers do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai_api
import pytest
from models import tiny_llama
from openai_api import Service

from hopscope.cli.appraise import Appraiser
from hopscope.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENAI_API_KEY", "HOPSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with openai_api.running(Service(folder)) as service:
        service.context = 4000
        yield service


class Commands:
    """Runs commands against one server and one database."""

    def __init__(self, server: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.reader = f"openai:{server.url}#{openai_api.MODEL},retries=0"
        self.db = ["--db", str(tmp_path / "runs.db")]
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        try:
            main([*arguments, *self.db])
            code: Any = 0
        except SystemExit as stop:
            code = stop.code
        told = self._capsys.readouterr()
        return code, told.out, told.err

    def run(self, *options: str, reader: str = "") -> tuple[int, str, str]:
        named = ["--reader", self.reader + reader, "--samples", "2"]
        return self("run", "Who?", "-w", "naive", "-k", "1", "--gold", "Bo", *named, *options)


@pytest.fixture
def commands(server: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(server, tmp_path, capsys)


def test_a_fault_while_measuring_does_not_cost_the_run(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: Any) -> None:
        raise RecursionError("deep\x1b[31m")

    monkeypatch.setattr(Appraiser, "appraise", fault)
    code, out, err = commands.run()
    assert code == 1
    assert "answer  " in out
    assert "the run is not appraised: RecursionError: deep[31m; this is a fault" in err
    assert commands("ls")[1].count("naive") == 1
