"""The command listens at an address, serves, and ends by a signal."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.view import experiment_figures, experiment_page
from hopscope.view.server.serving import listen
from tests.cli.experiment_example import call


def test_the_command_serves_until_a_signal(database: Path) -> None:
    command = [sys.executable, "-m", "hopscope.cli", "view", "--port", "0", "--read-only"]
    with subprocess.Popen(
        [*command, "--db", str(database)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        [address] = re.findall(r"http://127\.0\.0\.1:\d+/", told)
        with urllib.request.urlopen(f"{address}api/progress/towns", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130, -signal.SIGINT)
        assert "Traceback" not in process.stderr.read()


FIRST = """
import sys
from starlette.testclient import TestClient
from hopscope.store.store import Store
from hopscope.view.server.app import application
from hopscope.view.server.guarding import names

with Store.open(sys.argv[1], reading=True) as store:
    app = application(store, hosts=names("127.0.0.1", 80), read_only=True)
    client = TestClient(app, base_url="http://127.0.0.1")
    for path in ("/", "/experiments/towns"):
        assert client.get(path).status_code == 200
print([name for name in ("numpy", "scipy", "hopscope.lab", "vl_convert") if name in sys.modules])
"""


def test_the_first_page_waits_for_no_slow_import(database: Path) -> None:
    """They take a second of a fresh server, before anything is painted."""
    command = [sys.executable, "-c", FIRST, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_page_names_every_picture() -> None:
    assert tuple(experiment_figures.FIGURES) == experiment_page.PICTURES


def test_a_port_that_is_taken_is_told(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = call(capsys, "view", "--port", port, "--db", str(database))
    assert code == 2
    assert "choose another --port" in err


def test_an_address_of_another_computer_is_told() -> None:
    with pytest.raises(UsageError, match="cannot listen"), listen("192.0.2.7", 0):
        pass
