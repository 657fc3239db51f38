"""Components in the user's own files, such as `path/to/my_workflow.py`.

`named` takes a text from a command line, runs the file that it names, and replaces the path with
the file's name and the hash of its text: `my_workflow.py#3f9a0c…`. This name loads the component
from then on, and records contain it.

Invariant: a file is run only because its path was given, or because a process that was given its
path passed its text on. No name in a database or an experiment runs anything: it finds what this
process has run, and only with the very text that it was recorded with. What was run is known to
`sys.modules`, as all modules are.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from hopscope.runtime.errors import UsageError
from hopscope.runtime.places import expanded

ENDING = ".py"
DIGITS = 16
"""Hex digits of the hash."""
_HASH = re.compile(rf"(?<=\.py)#[0-9a-f]{{{DIGITS}}}(?![0-9a-f])")
_LETTER = r"[^\s\":@&,()*=]"
"""A character of a name within an expression."""
# Each begins only where a name can, so that a long text is not searched anew from every character.
_FIRST = re.compile(r"(?<![^:,])[^:,]++(?<=[^:,]\.py)")
"""The name before an argument or options."""
_WITHIN = re.compile(rf'(?<=")[^"]+\.py(?=[":,])|(?<!{_LETTER}){_LETTER}++(?<={_LETTER}\.py)')
"""A name within an expression, or as the value of an option."""
_HASHED = re.compile(rf"(?<!{_LETTER})({_LETTER}+\.py)#([0-9a-f]{{{DIGITS}}})(?![0-9a-f])")
_NAME = re.compile(r"[\w-][\w.-]*\.py")
_PREFIX = "hopscope_file_"
_CODE = "__hopscope_code__"


class CodeFile(NamedTuple):
    """A file that this process has run."""

    path: str
    text: str

    @property
    def file(self) -> str:
        """The file's name without the folder."""
        return Path(self.path).name

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:DIGITS]

    @property
    def name(self) -> str:
        """The component's name, in records too."""
        return f"{self.file}#{self.hash}"


def named(text: str) -> str:
    """Run the files that a user's text names, and replace their paths with the components' names.

    Raises:
        UsageError: a file cannot be run, or defines no `build(...)`.
    """
    if ENDING not in text:
        return text
    first = _FIRST.match(text)
    if first and _exists(first[0]):
        return run(first[0]) + named(text[first.end() :])
    return _WITHIN.sub(lambda found: run(found[0]) if _exists(found[0]) else found[0], text)


def check_recorded(texts: Iterable[str]) -> None:
    """Look whether `named` would run anything for texts that stand in a file of another's.

    Raises:
        UsageError: one names a file by its path, which our records never do.
    """
    for text in texts:
        for path in (*_FIRST.findall(text), *_WITHIN.findall(text)):
            if _exists(path):
                raise UsageError(f"{path} is a path in a record, which runs no file: begin anew")


def run(path: str) -> str:
    """Run a file; returns the component's name.

    Raises:
        UsageError: as `named`, or the file does not exist.
    """
    place = expanded(path).absolute()
    if not _NAME.fullmatch(place.name):
        raise UsageError(
            f"{path} cannot name a component: call the file by letters, digits, - and _, with .py"
        )
    try:
        code = CodeFile(str(place), place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} cannot be read: {reason}") from None
    _introduce(code)
    return code.name


def introduce(codes: Iterable[CodeFile]) -> None:
    """Run the files that another process has run.

    Raises:
        UsageError: as `named`.
    """
    for code in codes:
        _introduce(code)


def known() -> tuple[CodeFile, ...]:
    """All files that this process has run."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_PREFIX)]
    return tuple(code for module in modules if (code := getattr(module, _CODE, None)))


def is_code(name: str) -> bool:
    """Whether a component's name is the name of a file."""
    return shown(name).endswith(ENDING)


def shown(text: str) -> str:
    """A text without the hashes, for people."""
    return _HASH.sub("", text)


def stem(name: str) -> str:
    """The prefix of a component's options: the name of a file without its suffix."""
    return shown(name).removesuffix(ENDING)


def hashes(text: str) -> dict[str, str]:
    """The hashes of all files in a text of a record, by file."""
    return dict(sorted(_HASHED.findall(text)))


def require(names: str) -> None:
    """Check that this process has run all files that a record names.

    Raises:
        UsageError: as `load`.
    """
    for file, hash in hashes(names).items():
        load(f"{file}#{hash}")


def load(name: str) -> ModuleType:
    """The component of a file that was run, by `named`'s name or by the file's name.

    Raises:
        UsageError: this process has run no such file, or several.
    """
    codes = [code for code in known() if name in (code.name, code.file)]
    if len(codes) == 1:
        return sys.modules[_module(codes[0])]
    if codes:
        places = " and ".join(code.path for code in codes)
        raise UsageError(f"two files are called {name}, {places}: name one of them")
    if changed := [code for code in known() if code.file == shown(name)]:
        then, now = name.partition("#")[2], changed[0].hash
        raise UsageError(
            f"{changed[0].path} is not the {shown(name)} that was recorded: its text has the hash "
            f"{now}, that one {then}; restore it, or begin anew"
        )
    if "#" in name:
        raise UsageError(
            f"{shown(name)} is a file of code, which is run only where a command names it: add "
            f"--file PATH/{shown(name)}"
        )
    raise UsageError(
        f"{name} names no file that this command has run: give the path of one that is there, or "
        f"add --file PATH/{Path(name).name} where a stored run is by it"
    )


def _exists(path: str) -> bool:
    try:
        return expanded(path).is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def _module(code: CodeFile) -> str:
    return _PREFIX + re.sub(r"\W", "_", code.name)


def _introduce(code: CodeFile) -> None:
    """Run a file, unless this process has run it."""
    name = _module(code)
    if name in sys.modules:
        return
    module = ModuleType(name)
    module.__file__ = code.path
    setattr(module, _CODE, code)
    sys.modules[name] = module  # before it is run: dataclasses look their module up
    try:
        exec(compile(code.text, code.path, "exec"), module.__dict__)
        if not callable(getattr(module, "build", None)):
            raise UsageError(f"{code.path} is no component: it has no build(...)")
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, UsageError) or not isinstance(error, Exception | SystemExit):
            raise
        raise UsageError(
            f"{code.path}{_line(code, error)} cannot be run: {type(error).__name__}: {error}"
        ) from error


def _line(code: CodeFile, error: BaseException) -> str:
    """The line of the error in the file."""
    if isinstance(error, SyntaxError) and error.filename == code.path:
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == code.path]
    return f", line {lines[-1]}," if lines else ""
