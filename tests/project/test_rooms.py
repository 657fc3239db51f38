"""Rooms are folders. What begins with `_` stays in its room, no room is crowded, and imports among
modules and among rooms make no circle."""

import ast
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import grimp
import pytest

import hopscope

ROOT = Path(__file__).parents[2]
ROOMS = ("api", "cli", "lab", "runtime", "store", "tracing", "view", "workflows")
MOST = 16
"""Files beside each other that one still finds one's way in."""

Imports = dict[str, set[str]]


@pytest.fixture(scope="module")
def imports() -> Imports:
    """What each module imports, without the package's own name."""
    graph = grimp.build_graph(hopscope.__name__, cache_dir=None)
    # The package itself imports nothing before it is asked for.
    return {
        _short(name): {_short(each) for each in graph.find_modules_directly_imported_by(name)}
        for name in graph.modules - {hopscope.__name__}
    }


def _short(module: str) -> str:
    return module.removeprefix("hopscope.")


def room(module: str) -> str:
    """The folder that a module lies in; a package is its own."""
    return module if (ROOT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def owners(imported: str) -> list[str]:
    """The folders that keep something of this name to themselves."""
    parts = imported.split(".")
    return [".".join(parts[:at]) for at, part in enumerate(parts) if part.startswith("_")]


def crossing(place: str, imported: str) -> bool:
    """Whether a module in the folder `place` imports something private of another."""
    return any(not f"{place}.".startswith(f"{owner}.") for owner in owners(imported))


def reaching(place: str, imported: str) -> bool:
    """Likewise a test, which may import what is private to a component in the folder it mirrors."""
    inside = all(owner.rpartition(".")[0] == place for owner in owners(imported))
    return crossing(place, imported) and not inside


def circle(arrows: Imports) -> list[str]:
    """Some circle among these arrows; empty where there is none."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]  # each imports the next
    return []


def test_modules_make_no_circle(imports: Imports) -> None:
    assert circle(imports) == []


def test_rooms_make_no_circle(imports: Imports) -> None:
    between: Imports = {}
    for module, others in imports.items():
        between.setdefault(room(module), set()).update(
            room(other) for other in others if room(other) != room(module)
        )
    found = circle(between)
    closed_by = [
        f"{module} imports {other}"
        for one, next_one in pairwise(found)
        for module, others in imports.items()
        for other in others
        if (room(module), room(other)) == (one, next_one)
    ]
    assert closed_by == []


def test_private_modules_stay_in_their_room(imports: Imports) -> None:
    assert [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in others
        if crossing(room(module), other)
    ] == []


def test_tests_and_benchmarks_import_private_modules_of_the_room_they_mirror_alone(
    imports: Imports,
) -> None:
    """`tests/runtime/servers` mirrors `runtime.servers`, and sees what that sees, and so does what
    mirrors the folder of a component that is a folder itself."""
    found = []
    for folder in ("tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            place = ".".join(path.relative_to(ROOT / folder).parent.parts)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    names = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
                    found += [
                        f"{path.relative_to(ROOT)} imports {name}"
                        for name in map(_short, names)
                        if name in imports and reaching(place, name)
                    ]
    # It reads hostile texts with every parser, whatever room that belongs to.
    assert [each for each in found if not each.startswith("tests/test_hostile_texts.py")] == []


def test_no_room_is_crowded() -> None:
    folders = Counter(
        str(path.parent.relative_to(ROOT))
        for name in (*ROOMS, "tests", "benchmarks")
        for path in (ROOT / name).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert {folder: files for folder, files in folders.items() if files > MOST} == {}


def test_a_circle_is_found_and_so_is_a_crossing() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
    assert crossing("lab", "tracing.games._kernel")
    assert crossing("tracing", "tracing.games._kernel")
    assert not crossing("tracing.games", "tracing.games._kernel")
    assert not crossing("tracing.games.replay", "tracing.games._kernel")
    assert not crossing("lab", "tracing.games.kernel")
    assert reaching("tracing", "tracing.games.replay._kernel")
    assert not reaching("tracing.games", "tracing.games.replay._kernel")
    assert not reaching("tracing.games.replay", "tracing.games.replay._kernel")
