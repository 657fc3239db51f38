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
