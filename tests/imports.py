"""Which tests compute with models, told by what their files import.

A file does if torch or transformers can be reached from it: by imports, those inside functions
included, through the tests' helpers and the library. Of a package of the library every module
counts, as components are loaded by name.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARIES = frozenset({"torch", "transformers"})


def computes(test: Path) -> bool:
    """Whether a test's file can reach a library that computes."""
    todo, seen = [test], {test}
    while todo:
        for name in _imported(todo.pop()):
            if name.partition(".")[0] in LIBRARIES:
                return True
            new = set(_files(name)) - seen
            seen |= new
            todo += new
    return False


@cache
def _imported(file: Path) -> frozenset[str]:
    """The names of modules."""
    found: set[str] = set()
    todo: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if any(_files(name)) else node.module for name in names}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        else:
            todo += ast.iter_child_nodes(node)
    return frozenset(found)


def _files(name: str) -> Iterator[Path]:
    """The files of a module or package of ours; none of others and of what is no module."""
    first, *rest = name.split(".")
    if not rest or first not in ("hopscope", "tests"):
        return
    place = ROOT.joinpath(*(rest if first == "hopscope" else [first, *rest]))
    if place.with_suffix(".py").is_file():
        yield place.with_suffix(".py")
    elif (place / "__init__.py").is_file():
        yield from place.glob("*.py")
