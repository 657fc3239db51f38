"""The Python in docs/python.md and the README runs, and prints what stands there."""

import ast
from contextlib import redirect_stdout
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/python.md", "docs/agents/recording.md", "docs/agents/rewards.md")


class Block(NamedTuple):
    """A block of code, and what it prints where that stands below it."""

    code: str
    output: str | None


def blocks(page: str) -> list[Block]:
    fences = [
        (token.info, token.content)
        for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8"))
        if token.type == "fence"
    ]
    return [
        Block(code, following[1] if following and following[0] == "output" else None)
        for (info, code), following in zip_longest(fences, fences[1:])
        if info == "python"
    ]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "default.db"))
    monkeypatch.setenv("COLUMNS", "150")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_and_print_what_stands_there(page: str, elsewhere: Path) -> None:
    found = blocks(page)
    assert found
    # As in a script: functions see the names of all blocks, and type hints are found.
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in found:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(block.code, page, "exec"), names)
        if block.output is not None:
            assert printed.getvalue() == block.output
    for name in ("session", "own", "limited"):
        if name in names:
            names[name].close()


def is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def test_snippets_that_are_not_run_are_python_all_the_same() -> None:
    shown = [
        (page, token.content)
        for page in PAGES
        for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8"))
        if token.type == "fence" and token.info == "text" and "hopscope." in token.content
    ]
    assert shown
    assert [each for each in shown if not is_python(each[1])] == []
