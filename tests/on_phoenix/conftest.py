"""A real server of Phoenix on loopback, from an environment of its own (`make test-phoenix`), and
an experiment of 20 questions."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hopscope.api.session import Session
from hopscope.lab.evaluating import evaluate

PYTHON = "HOPSCOPE_TEST_PHOENIX"
"""Names the Python of that environment."""
NAME = "towns"
QUESTIONS = 20
DETAILED = 2
"""Runs with credits of passages, too."""
PATIENCE = 300.0
"""Seconds that the server may take to start."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} names no Python with Phoenix: make test-phoenix")
    folder = tmp_path_factory.mktemp("phoenix")
    ports = [_free_port() for _ in range(2)]
    command = [str(Path(python).with_name("phoenix")), "serve"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(ports[0]),
        "PHOENIX_GRPC_PORT": str(ports[1]),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    address = f"http://127.0.0.1:{ports[0]}"
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait(address, running, folder / "log")
        yield address
    finally:
        running.terminate()
        running.wait(60)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and running.poll() is None:
        try:
            if httpx.get(f"{url}/healthz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    pytest.fail(f"Phoenix did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database with the experiment."""
    file = tmp_path_factory.mktemp("runs") / "runs.db"
    with Session(
        store=file, samples=2, meters=["seper"], rules=["trajectory", "shapley"]
    ) as session:
        evaluated = evaluate(session, "hopland:dev", name=NAME, limit=QUESTIONS)
        for run, _ in zip(evaluated.runs(), range(DETAILED), strict=False):
            session.credit(run, over="passages", rules=["shapley"])
    return file
