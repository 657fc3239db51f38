"""What all tests share."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from hopscope.runtime.models.processor import settle_processor
from tests.imports import computes

# Exceptions that nobody expects come out of the command line, in subprocesses, too.
os.environ["HOPSCOPE_TRACEBACK"] = "1"
# The configuration of whoever runs the tests has no part in them.
os.environ["XDG_CONFIG_HOME"] = str(Path(__file__).parent / "no_configuration")

# Before any test computes: some make tensors before the product does.
settle_processor()

# How long an example takes is the machine's business.
settings.register_profile("hopscope", deadline=None)
settings.load_profile("hopscope")


DATA = "HOPSCOPE_TEST_DATA"
"""Names a folder of public research data, to benchmarks, too (benchmarks/research_data.py)."""


@pytest.fixture(scope="session")
def research_data() -> Callable[[str], Path]:
    """Finds a file of the research data by its name; where it is not there the test is skipped."""

    def find(name: str) -> Path:
        folder = os.environ.get(DATA)
        path = Path(folder or "", name)
        if not folder or not path.is_file():
            pytest.skip(f"{DATA} names no folder with {name}")
        return path

    return find


@pytest.fixture
def workers_that_start_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers fork from a server that has loaded torch and transformers once for all tests, which
    takes five seconds of processor time for each of those that start as the product has them
    start (tests/lab/experiments/test_workers.py, and commands that are processes of their own)."""
    from hopscope.lab.experiments import workers

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.cli.loaded"])
    monkeypatch.setattr(workers, "get_context", lambda method: context)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Record tests/workflows/golden and tests/cli/views/screens anew.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests that compute with models, where that is asked about."""
    if "portable" not in config.getoption("-m"):
        return
    chosen = {path: computes(path) for path in {item.path for item in items}}
    for item in items:
        if chosen[item.path]:
            item.add_marker("portable")
