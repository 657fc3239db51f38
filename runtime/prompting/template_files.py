"""Prompts as files: `FOLDER/WORKFLOW/NAME.jinja`, with `demonstrations.jsonl` beside them.

The sets that are shipped are folders in `sets`; `default` has every prompt, any other set, ours or
a user's, those that differ. Its hash tells whether two sets send the same.
"""

from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import digest

SUFFIX = ".jinja"
DEMONSTRATIONS = "demonstrations.jsonl"
README = "README.md"
DEFAULT = "default"
OWN = "own"
"""The folder of a user's set for templates of any name: for parts of others and own workflows."""
DIGITS = 16
"""Hex digits of a set's hash."""


class TemplateFile(NamedTuple):
    """A file of a set."""

    path: str
    """For messages."""
    text: str


def _sets() -> Traversable:
    return files("hopscope.runtime.prompting") / "sets"


def names() -> list[str]:
    """The sets that are shipped, the default first."""
    there = (folder.name for folder in _sets().iterdir() if folder.is_dir())
    return sorted(there, key=lambda name: (name != DEFAULT, name))


def shipped(name: str) -> dict[str, TemplateFile]:
    """The files of a shipped set by their paths in it, such as `ircot/reason.jinja`."""
    return _read(_sets() / name, "")


def of_folder(folder: Path) -> dict[str, TemplateFile]:
    """The files of a user's set.

    Raises:
        UsageError: there is no such folder, or it has a file that no prompt reads.
    """
    if not folder.is_dir():
        known = ", ".join(names())
        raise UsageError(
            f"no folder of prompts at {folder}: give one, or a set that is shipped: {known}; "
            f"`hopscope new prompts FOLDER` writes one to edit"
            f"{did_you_mean(folder.name, names())}"
        )
    known_files = shipped(DEFAULT)
    homes = {path.partition("/")[0] for path in known_files}

    def check(path: str, place: str) -> None:
        home, _, rest = path.partition("/")
        demonstrates = rest == DEMONSTRATIONS and home in homes
        own = home == OWN and rest.endswith(SUFFIX)
        if path not in known_files and not demonstrates and not own:
            meant = did_you_mean(path, known_files)
            raise UsageError(
                f"{place}, line 1: no prompt is called {path.removesuffix(SUFFIX)} (files of other "
                f"names go into {OWN}/){meant}"
            )

    found = _read(folder, "", check)
    if not found:
        raise UsageError(f"{folder} holds no prompts, such as ircot/reason{SUFFIX}")
    return found


def _accept(path: str, place: str) -> None:
    """Of a set that is shipped, every file is right."""


def _read(
    folder: Traversable, before: str, check: Callable[[str, str], None] = _accept
) -> dict[str, TemplateFile]:
    """The files below a folder; `check` gets the path in the set and the place of each before it is
    read, so that a wrong folder is not read through."""
    found: dict[str, TemplateFile] = {}
    try:
        entries = sorted(folder.iterdir(), key=lambda each: each.name)
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from None
    for each in entries:
        if each.name.startswith((".", "__")) or each.name == README:
            continue
        path = f"{before}{each.name}"
        if each.is_dir():
            found |= _read(each, f"{path}/", check)
            continue
        check(path, str(each))
        try:
            found[path] = TemplateFile(str(each), each.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UsageError(f"{each} cannot be read: {reason}") from None
    return found


def set_hash(found: Mapping[str, TemplateFile]) -> str:
    """The hash of a set's files."""
    parts = (part for path in sorted(found) for part in (path, found[path].text))
    return digest(*parts)[:DIGITS]


def demonstrations(file: TemplateFile) -> tuple[Mapping[str, Any], ...]:
    """The demonstrations in a file, one JSON object a line.

    Raises:
        UsageError: a line is something else.
    """
    found = []
    for number, line in enumerate(file.text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            each = json_value(line)
        except ValueError as error:
            raise UsageError(f"{file.path}, line {number}: {error}") from None
        if not isinstance(each, dict):
            raise UsageError(
                f"{file.path}, line {number}: a demonstration is an object, such as "
                '{"question": "...", "reply": "..."}'
            )
        found.append(each)
    return tuple(found)
