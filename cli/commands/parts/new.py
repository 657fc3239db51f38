"""`hopscope new`: write the skeleton of a component, with a test."""

import re
from enum import StrEnum
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from hopscope.api.views import render
from hopscope.runtime.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9_]*")
USES = {
    "workflow": 'hopscope run "Who?" -w {file}',
    "meter": "hopscope credit last --meter {file} --rule shapley",
    "policy": 'hopscope run "Who?" -w ircot --policy {file}',
}


class NewKind(StrEnum):
    """The kinds with a skeleton."""

    workflow = "workflow"
    meter = "meter"
    policy = "policy"


def new(
    kind: Annotated[NewKind, typer.Argument(help="What to write.")],
    name: Annotated[str, typer.Argument(help="Its name: small letters, digits and underscores.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to write; by default here.")
    ] = Path(),
) -> None:
    """Write NAME.py and test_NAME.py: a component that works, and a test that passes.

    Change them, name the file wherever a component is named, and run the test with pytest. Files
    that exist are never replaced.
    """
    if not _NAME.fullmatch(name) or iskeyword(name):
        raise UsageError(
            f"{name}: a name has small letters, digits and underscores and begins with a letter, "
            "as in my_workflow"
        )
    if not out.is_dir():
        raise UsageError(f"--out {out}: there is no such folder; make it first")
    words = name.split("_")
    names = {
        "NAME": name,
        "Name": " ".join(words).capitalize(),
        "Class": "".join(word.capitalize() for word in words),
    }
    written = {
        out / f"{name}.py": f"{kind.value}.py.txt",
        out / f"test_{name}.py": f"{kind.value}_test.py.txt",
    }
    for path in written:
        if path.exists():
            raise UsageError(f"{path} exists: choose another name, or remove it first")
    for path, skeleton in written.items():
        text = files("hopscope.cli.skeletons").joinpath(skeleton).read_text("utf-8")
        path.write_text(Template(text).substitute(names), "utf-8")
    file, test = (f"./{path}" if not path.is_absolute() else str(path) for path in written)
    render.note(f"wrote {file} and {test}")
    for command in (USES[kind.value].format(file=file), f"python -m pytest {test}"):
        render.out().print(render.plain(command), soft_wrap=True)
