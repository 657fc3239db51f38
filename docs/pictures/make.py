"""Screenshots of the local view for the README, of an experiment on Hopland.

    python docs/pictures/make.py [--db FILE] [--chromium PATH]       # or `make pictures`

Needs the extra `view`, Playwright and a Chromium.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from hopscope.store.store import Store

HERE = Path(__file__).parent
NAME = "first"
EVAL = ["eval", "hopland:dev", "-w", "closed_book", "-w", "naive", "-w", "ircot"]
SIZE = ["--limit", "6", "--samples", "4", "--name", NAME]
WIDE, HIGH = 900, 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", type=Path, help="a database with the experiment `first`")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = given.db or Path(folder, "runs.db")
        hopscope = [sys.executable, "-m", "hopscope.cli"]
        where = ["--db", str(database)]
        if given.db is None:
            subprocess.run([*hopscope, *EVAL, *SIZE, *where], check=True)
        command = [*hopscope, "view", "--port", "0", "--read-only", *where]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            [address] = re.findall(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            _shoot(address, _pages(database), given.chromium)
            process.terminate()


def _pages(database: Path) -> dict[str, tuple[str, int]]:
    """The path of each picture's page, and the number of charts there."""
    with Store.open(database, reading=True) as store:
        items = store.experiments.items(NAME)
        runs = [item.outcome for item in items if item.arm == "ircot" and item.outcome]
    longest = max(runs, key=lambda run: run.retrievals)
    return {"run": (f"/runs/{longest.run_id}", 4), "experiment": (f"/experiments/{NAME}", 5)}


def _shoot(address: str, pages: dict[str, tuple[str, int]], chromium: str) -> None:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (path, charts) in pages.items():
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
            page.goto(address + path)
            expect(page.locator("figure[data-drawn]")).to_have_count(charts, timeout=120_000)
            page.screenshot(path=HERE / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
