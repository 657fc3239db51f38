"""LangChain's own tracing posts what a run reads and writes to LangSmith; nobody asked us to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import models
from tests.servers import openai_api
from tests.servers.langsmith_receiver import CONTEXTS, VARIABLES, receiver


@pytest.fixture(scope="module")
def posts() -> dict[str, tuple[int, int]]:
    """By switch: of a run of ours, and of a runnable that is not ours."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.servers.langsmith_receiver"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr
    lines = (line.partition(": ") for line in told.stdout.splitlines())
    return {switch: tuple(map(int, numbers.split())) for switch, _, numbers in lines}


@pytest.mark.parametrize("switch", [*VARIABLES, *CONTEXTS])
def test_langsmith_gets_nothing_of_a_run_however_its_tracing_is_switched_on(
    switch: str, posts: dict[str, tuple[int, int]]
) -> None:
    """All of them sent the question before."""
    ours, theirs = posts[switch]
    assert ours == 0
    assert theirs > 0


def test_langsmith_gets_nothing_of_an_experiment(tmp_path: Path) -> None:
    """By processes and threads. A reader on a server spares them a model library."""
    service = openai_api.Service(models.tiny_llama(tmp_path / "llama"))
    with receiver() as (url, posted), openai_api.running(service):
        environment = os.environ | dict.fromkeys(VARIABLES, "true")
        environment |= {"LANGSMITH_ENDPOINT": url, "LANGSMITH_API_KEY": "none"}
        command = [sys.executable, "-m", "hopscope.cli", "eval", "hopland:dev", "-w", "naive"]
        command += ["--limit", "2", "--samples", "2", "--workers", "2", "--threads", "2"]
        command += ["--reader", f"openai:{service.url}#{openai_api.MODEL}"]
        command += ["-o", "seper.weight=uniform"]
        told = subprocess.run(
            [*command, "--name", "e", "--db", str(tmp_path / "db")],
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )
    assert told.returncode == 0, told.stderr
    assert posted == []
