"""Commands in the documents exist with their options, and so do the files that they name."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

from hopscope.cli.commands import COMMANDS, mounted
from tests.project.test_docs_links import PAGES, ROOT

APP = get_command(mounted(COMMANDS))
# The changelog speaks of earlier versions, too.
TEXTS = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in PAGES
    if page.name != "CHANGELOG.md"
}


def commands(text: str) -> Iterator[str]:
    """The command lines in blocks and spans of code, without their prompt."""
    for token in MarkdownIt().enable("table").parse(text):
        if token.type in ("fence", "code_block") and token.info in ("", "console"):
            for line in token.content.replace("\\\n", " ").splitlines():
                yield line.strip().removeprefix("$ ")
        yield from (span.content for span in token.children or [] if span.type == "code_inline")


def unknown(line: str) -> list[str]:
    """The words of a `hopscope` command line that no command or option has."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a piece of a sentence with an apostrophe
        return []
    if words[:1] != ["hopscope"]:
        return []
    command: Any = APP
    words = words[1:]
    while words and (inner := getattr(command, "commands", {})):
        if words[0] not in inner:
            # `lab` and the like do something themselves; other groups take no arguments.
            if not command.invoke_without_command and not words[0].startswith("-"):
                return [words[0]]
            break
        command = inner[words.pop(0)]
    known = {option for given in command.params for option in (*given.opts, *given.secondary_opts)}
    known |= {"-h", "--help"}
    return [
        word
        for word in words
        if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in known
    ]


@pytest.mark.parametrize("page", TEXTS)
def test_commands_and_options_exist(page: str) -> None:
    assert {line: words for line in commands(TEXTS[page]) if (words := unknown(line))} == {}


@pytest.mark.parametrize("page", TEXTS)
def test_scripts_and_modules_exist(page: str) -> None:
    text = "\n".join(commands(TEXTS[page]))
    scripts = re.findall(r"\bpython ((?:benchmarks|tests)/[\w/]+\.py)", text)
    assert [name for name in scripts if not (ROOT / name).is_file()] == []
    modules = re.findall(r"\bpython -m (hopscope[\w.]+)", text)
    assert [name for name in modules if find_spec(name) is None] == []


@pytest.mark.parametrize("page", TEXTS)
def test_files_of_the_project_exist(page: str) -> None:
    rooms = "api|runtime|workflows|tracing|store|lab|cli|tests|benchmarks|docs|examples"
    named = (code for code in commands(TEXTS[page]) if re.fullmatch(rf"({rooms})/[\w./-]+", code))
    made_up = re.compile(r"workflows/ask_again\.py|[\w/]+/NAME\.py")
    assert [n for n in named if not made_up.fullmatch(n) and not (ROOT / n).exists()] == []


def test_a_wrong_command_would_be_found() -> None:
    assert unknown("hopscope run 'Who?' --gold A -w ircot") == []
    assert unknown("hopscope run 'Who?' --golden A") == ["--golden"]
    assert unknown("hopscope index destroy wiki") == ["destroy"]
    assert unknown("hopscope fly") == ["fly"]


def test_the_documents_hold_commands() -> None:
    lines = [line for text in TEXTS.values() for line in commands(text)]
    assert sum(line.startswith("hopscope ") for line in lines) > 100
