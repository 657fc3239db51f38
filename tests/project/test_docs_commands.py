"""Commands in the documents exist with their options, and so do the files that they name."""

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
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
    rooms = "api|runtime|workflows|tracing|store|lab|cli|view|tests|benchmarks|docs|examples"
    names = re.compile(rf"(?<![\w./-])(?:{rooms})/[\w./-]+")
    named = (name for line in commands(TEXTS[page]) for name in names.findall(line))
    made_up = re.compile(r"workflows/ask_again\.py|[\w/]+/NAME\.py")
    assert [n for n in named if not made_up.fullmatch(n) and not (ROOT / n).exists()] == []


@pytest.mark.parametrize("page", TEXTS)
def test_make_s_targets_and_the_variables_exist(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    lines = list(commands(TEXTS[page]))
    named = {target for line in lines for target in re.findall(r"^make ([a-z-]+)", line)}
    assert named <= targets
    sources = [makefile, *(path.read_text(encoding="utf-8") for path in sources_of("tests"))]
    read = set(re.findall(r"HOPSCOPE_[A-Z_]+[A-Z]", "\n".join(sources)))
    variables = {each for line in lines for each in re.findall(r"HOPSCOPE_[A-Z_]+[A-Z]", line)}
    assert variables <= read


def sources_of(*more: str) -> list[Path]:
    """The files of the product's code, and of these folders."""
    rooms = [path.name for path in (ROOT / "src" / "hopscope").iterdir() if path.is_symlink()]
    kinds = (".py", ".html", ".js", ".toml", ".txt", ".jinja")
    return [
        path
        for room in (*rooms, *more)
        for path in sorted((ROOT / room).rglob("*"))
        if path.suffix in kinds
    ]


def named_in(source: str) -> list[str]:
    """The command lines between backticks, also over several lines of a text or a comment."""
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    found = re.findall(r"`(hopscope [^`{}]+)`", joined)
    return [" ".join(line.replace("\n# ", "\n").split()) for line in found]


def test_commands_that_the_code_names_exist() -> None:
    """Help texts, errors, pages of the local view and docstrings name commands."""
    named = [
        (path, line) for path in sources_of() for line in named_in(path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 100
    assert [(str(path), line) for path, line in named if unknown(line)] == []


def test_a_wrong_command_would_be_found() -> None:
    assert unknown("hopscope run 'Who?' --gold A -w ircot") == []
    assert unknown("hopscope run 'Who?' --golden A") == ["--golden"]
    assert unknown("hopscope index destroy wiki") == ["destroy"]
    assert unknown("hopscope fly") == ["fly"]
    [line] = named_in('say("ask `hopscope"\n    f" run --golden A` again")')
    assert unknown(line) == ["--golden"]


def test_the_documents_hold_commands() -> None:
    lines = [line for text in TEXTS.values() for line in commands(text)]
    assert sum(line.startswith("hopscope ") for line in lines) > 100
