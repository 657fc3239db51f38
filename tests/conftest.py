"""Stands here so that pytest puts this folder on the path and tests can import its helpers."""

import os

import pytest
from hypothesis import settings

# Exceptions that nobody expects come out of the command line, in subprocesses, too.
os.environ["HOPSCOPE_TRACEBACK"] = "1"

# How long an example takes is the machine's business.
settings.register_profile("hopscope", deadline=None)
settings.load_profile("hopscope")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Record the runs in tests/workflows/golden and the tables in tests/cli/screens anew.",
    )
