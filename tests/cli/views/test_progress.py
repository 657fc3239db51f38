"""How an experiment is getting on, as a person sees it."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from hopscope.cli.views import progress
from hopscope.lab.experiments.tally import Tally
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.budget.prices import ModelPrice, Price
from hopscope.runtime.types import Question, Run, RunError, Step, Usage
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Item

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ENTRY = DatasetEntry(question=Question(text="Who?", answers=("Bruno Costa",)))
PRICE = Price(model=ModelPrice(input=1.0, output=10.0))


@pytest.fixture
def tally(monkeypatch: pytest.MonkeyPatch) -> Tally:
    """Four items; time passes by 2 s with each look at the clock."""
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    items = [
        Item(entry=ENTRY, arm="naive", workflow="naive", position=i, status="pending")
        for i in range(4)
    ]
    return Tally(items, {}, {})


def do(tally: Tally, board: progress.Board, answer: str | None) -> None:
    """One item with 1,000 tokens in and 100 out; it failed if there is no answer."""
    usage = Usage(input_tokens=1000, output_tokens=100, calls=1)
    step = Step(index=0, name="answer", kind="generate", usage=usage, started=NOW, seconds=1.0)
    run = Run(
        id="x", question=ENTRY.question, workflow="w", answer=answer, steps=(step,), started=NOW
    )
    error = None if answer else RunError(type="ReaderError", message="x")
    claimed = ClaimedItem(
        entry=ENTRY, arm=Arm(label="naive", workflow="w", settings={}), position=0
    )
    board.add(tally.add(claimed, ItemResult(run, error=error)))


def test_a_line_tells_how_far_how_fast_and_how_well(tally: Tally) -> None:
    board = progress.Board(tally, PRICE)
    assert board.line() == "0 of 4 done, 0 tokens, 0.0000 USD, EM -, ΔSePer -"
    do(tally, board, "Bruno Costa")
    do(tally, board, None)
    assert board.line() == (
        "2 of 4 done, 1 failed, 2,200 tokens, 550 tokens/s, 0.0040 USD, EM 1.00, ΔSePer -, "
        "0:04 left"
    )


def test_a_terminal_sees_a_table_and_the_line_in_full(tally: Tally) -> None:
    """A bar that does not end its line once swallowed half of the next."""
    board = progress.Board(tally, Price())
    do(tally, board, "Lisbon")
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, color_system=None, width=100).print(board)
    table, row, bar, line = screen.getvalue().splitlines()
    assert table.split()[:3] == ["workflow", "done", "failed"]
    assert row.split() == ["naive", "1/4", "0.00", "-", "0", "1", "1,100", "-"]
    assert set(bar.strip()) <= {"━", "╺", "╸", " "}
    assert line.startswith("1 of 4 done, 1,100 tokens, 550 tokens/s, EM 0.00, ΔSePer -")
    assert line.rstrip().endswith("left")


def test_without_a_terminal_there_are_lines_now_and_then(
    tally: Tally, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 5.0)
    board = progress.Board(tally, PRICE)
    with progress.showing(board) as lines:
        assert lines is not None
        for _ in range(4):
            do(tally, board, "Bruno Costa")
            lines.tick()
    told = capsys.readouterr().err.splitlines()
    assert [line[:11] for line in told] == ["3 of 4 done", "4 of 4 done"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (3725, "1:02:05"), (90_000, "25:00:00")]
)
def test_durations(seconds: float, text: str) -> None:
    assert progress.duration(seconds) == text
