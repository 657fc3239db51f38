"""`import hopscope` costs nothing, and gives the names that docs/python.md promises."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hopscope

HEAVY = ("torch", "transformers", "pydantic", "numpy", "langgraph", "sqlalchemy", "rich", "typer")


def test_importing_the_package_loads_nothing_else() -> None:
    code = "import sys, hopscope; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "hopscope" in loaded
    assert not loaded.intersection(HEAVY)


def test_the_session_loads_no_model_library_until_a_model_is_needed() -> None:
    code = (
        "import sys, hopscope; hopscope.Session(store='sqlite://'); hopscope.Question(text='?');"
        "print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "pydantic" in loaded
    assert not loaded.intersection({"torch", "transformers"})


def test_every_promised_name_is_there_and_listed() -> None:
    for name in hopscope.__all__:
        assert getattr(hopscope, name).__name__ == name
    assert set(hopscope.__all__) <= set(dir(hopscope))


def test_editors_see_the_same_names_as_the_interpreter() -> None:
    tree = ast.parse(Path(hopscope.__file__).read_text())
    typed = {
        alias.name: node.module.removeprefix("hopscope.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hopscope.")
        for alias in node.names
    }
    assert typed == hopscope._HOMES
    assert sorted(typed) == sorted(hopscope.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        hopscope.Sesion  # noqa: B018
