"""Files of the user's own as components: what runs them, and what never does."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope import workflows
from hopscope.runtime import code_files, components
from hopscope.runtime.code_files import named
from hopscope.runtime.errors import UsageError

BUILD = "def build(*, k: int = 4): ..."


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """What a test has run is forgotten with it."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("hopscope_file_"):
            del sys.modules[name]


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A component in a file, in the folder that commands are given in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my-part.py"
    path.write_text(BUILD)
    return path


def test_a_file_that_is_named_is_a_component_from_then_on(part: Path) -> None:
    name = named("./my-part.py")
    assert code_files.shown(name) == "my-part.py"
    assert code_files.hashes(name) == {"my-part.py": code_files.known()[0].hash}
    module = components.load(workflows, name)
    assert list(components.options(module.build)) == ["k"]
    assert named(str(part)) == name, "the path does not count"
    assert components.load(workflows, "my-part.py") is module, "as a stored run calls it"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my-part.py:k=3", "{}:k=3"),
        ("./my-part.py,cache=a.db", "{},cache=a.db"),
        ("judge:./my-part.py:x", "judge:{}:x"),
        ("rrf(hopland,./my-part.py:a)@RR(my-part.py,k=2)@5", "rrf(hopland,{0}:a)@RR({0},k=2)@5"),
        ("my-part.py@5&my-part.py", "{0}@5&{0}"),
        ("sources=SE=./my-part.py:http://a/b", "sources=SE={}:http://a/b"),
        ("naive:policy=./my-part.py:0.5", "naive:policy={}:0.5"),
        ('"a folder/my-part.py":x@5', '"{}":x@5'),
        ("a folder/my-part.py:x", "{}:x"),
        ("my-part.pyc", "my-part.pyc"),
        ("other.py", "other.py"),
        ("~nobody-here/other.py:k=3", "~nobody-here/other.py:k=3"),
        ("ircot:k=3", "ircot:k=3"),
    ],
)
def test_files_are_named_wherever_a_component_is(part: Path, text: str, expected: str) -> None:
    (part.parent / "a folder").mkdir()
    (part.parent / "a folder" / "my-part.py").write_text(BUILD)
    assert named(text) == expected.format(code_files.run(str(part)))


def test_a_name_runs_nothing_that_was_not_named_by_its_path(part: Path) -> None:
    """A database that somebody else wrote may name any file there is."""
    part.write_text(f"from pathlib import Path\nPath('ran').touch()\n{BUILD}")
    hash = code_files.CodeFile(str(part), part.read_text()).hash
    for name in (
        "my-part.py",
        "./my-part.py",
        str(part),
        f"my-part.py#{hash}",
        f"./my-part.py#{hash}",
    ):
        with pytest.raises(UsageError, match=r"add --file PATH/.*my-part.py"):
            components.load(workflows, name)
    assert not Path("ran").exists()
    named("my-part.py")
    assert Path("ran").exists()
    with pytest.raises(UsageError, match="no file that this command has run"):
        components.load(workflows, str(part))


def test_a_file_that_has_changed_is_not_the_one_that_was_recorded(part: Path) -> None:
    name = named("my-part.py")
    sys.modules.pop("hopscope_file_" + name.replace("-", "_").replace(".", "_").replace("#", "_"))
    part.write_text(BUILD + "\n")
    named("my-part.py")
    with pytest.raises(UsageError, match=r"is not the my-part.py that was recorded: .*restore it"):
        components.load(workflows, name)


def test_two_files_of_a_name_are_told_apart_by_their_hash_only(part: Path) -> None:
    name = named("my-part.py")
    (part.parent / "other").mkdir()
    (part.parent / "other" / "my-part.py").write_text("K = 1\n" + BUILD)
    other = named("other/my-part.py")
    assert other != name
    assert components.load(workflows, other).K == 1
    with pytest.raises(UsageError, match=r"two files are called my-part\.py"):
        components.load(workflows, "my-part.py")


def test_what_was_run_is_run_again_from_its_text(part: Path) -> None:
    """A worker has neither the path nor, on another machine, the file."""
    name = named("my-part.py")
    codes = code_files.known()
    module = components.load(workflows, name)
    del sys.modules[module.__name__]
    part.unlink()
    code_files.introduce(codes)
    assert components.load(workflows, name) is not module
    assert components.load(workflows, name).__file__ == str(part)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("1 +", r"my-part.py, line 1 cannot be run: SyntaxError"),
        ("\nimport nowhere_at_all\n", r"my-part.py, line 2, cannot be run: ModuleNotFoundError"),
        ("raise SystemExit(3)", r"my-part.py, line 1, cannot be run: SystemExit: 3"),
        ("buidl = 1", r"my-part.py is no component: it has no build\(...\)"),
    ],
)
def test_a_file_that_is_no_component_is_told(part: Path, source: str, told: str) -> None:
    part.write_text(source)
    with pytest.raises(UsageError, match=told):
        named("my-part.py")
    assert code_files.known() == ()


def test_a_file_that_cannot_be_read_is_told(part: Path) -> None:
    part.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read: it is not UTF-8"):
        named("my-part.py")
    with pytest.raises(UsageError, match=r"nowhere\.py cannot be read: No such file"):
        code_files.run("nowhere.py")


def test_a_file_whose_name_would_be_read_as_options_is_refused(part: Path) -> None:
    odd = part.rename(part.with_name("my(part).py"))
    with pytest.raises(UsageError, match="call the file by letters, digits"):
        named(str(odd))


def test_a_dataclass_in_a_file_finds_its_own_annotations(part: Path) -> None:
    part.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        f"from typing import ClassVar\n@dataclass\nclass A:\n    b: ClassVar[int] = 1\n{BUILD}"
    )
    assert components.load(workflows, named("my-part.py")).A() is not None
