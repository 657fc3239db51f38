"""What the tests of commands share."""

import multiprocessing

import pytest

from hopscope.cli.views.notes import attach
from hopscope.lab.experiments import workers


@pytest.fixture(autouse=True, scope="session")
def the_log_is_printed() -> None:
    """As `main` has it, which tests pass by where they invoke a command in this process."""
    attach()


@pytest.fixture(autouse=True)
def workers_that_start_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers fork from a server that has loaded torch and transformers once for all tests, which
    takes five seconds of processor time for each of those that start as the product has them
    start (tests/lab/experiments/test_workers.py, and commands that are processes of their own)."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cli.loaded"])
    monkeypatch.setattr(workers, "get_context", lambda method: context)
