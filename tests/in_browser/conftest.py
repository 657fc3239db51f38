"""A server over an experiment on Hopland, and Debian's Chromium.

`make test-browser` names the browser in HOPSCOPE_TEST_BROWSER; elsewhere these tests are skipped.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from hopscope.store.store import Store
from tests.view import experiment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "HOPSCOPE_TEST_BROWSER"
HOPLAND = "hopland"


class Served(NamedTuple):
    address: str
    database: Path


@pytest.fixture(scope="session")
def chromium() -> str:
    path = os.environ.get(CHROMIUM, "")
    if not Path(path).is_file():
        pytest.skip(f"{CHROMIUM} names no browser: run `make test-browser`")
    return path


@pytest.fixture(scope="session")
def served(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    database = experiment.database(tmp_path_factory.mktemp("browser"))
    hopscope = [sys.executable, "-m", "hopscope.cli"]
    settings = ["-w", "naive", "-w", "ircot", "--limit", "2", "--samples", "3", "--name", HOPLAND]
    where = ["--db", str(database)]
    subprocess.run([*hopscope, "eval", "hopland:dev", *settings, *where], check=True)
    command = [*hopscope, "view", "--port", "0", *where]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        [address] = re.findall(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        yield Served(address, database)
        process.terminate()


@pytest.fixture
def store(served: Served) -> Iterator[Store]:
    with Store.open(served.database) as opened:
        yield opened


@pytest.fixture(scope="session")
def browser(chromium: str) -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        # Without a sandbox, which root may not have in a container; the pages are our own.
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def told() -> list[str]:
    """What the page's console said."""
    return []


@pytest.fixture
def page(browser: "Browser", told: list[str]) -> "Iterator[Page]":
    """A new page; whatever it says in the console fails the test, as a violated policy does."""
    opened = browser.new_page(viewport={"width": 1100, "height": 900})
    opened.set_default_timeout(30_000)
    opened.on("console", lambda message: told.append(message.text))
    opened.on("pageerror", lambda error: told.append(str(error)))
    opened.on("dialog", lambda dialog: told.append(f"dialog {dialog.message}"))
    yield opened
    opened.close()
    # Vega says so of a panel in which nothing has an interval.
    assert [each for each in told if "Infinite extent" not in each] == []
