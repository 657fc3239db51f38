"""`hopscope new`: write the skeleton of a component, with a test, or a folder of prompts."""

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
from hopscope.runtime.texts.counting import counted

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
    prompts = "prompts"


def new(
    kind: Annotated[NewKind, typer.Argument(help="What to write.")],
    name: Annotated[
        str,
        typer.Argument(
            help="Its name: small letters, digits and underscores; of prompts a folder to make."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to write; by default here.")
    ] = Path(),
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="SET", help="Of prompts: the shipped set to copy; the default's."
        ),
    ] = None,
) -> None:
    """Write a component that works, with a test that passes, or a folder of prompts to edit.

    Components: change NAME.py, name it wherever a component is named, and run test_NAME.py with
    pytest. Prompts: edit the files, remove those that stay as they are, and name the folder with
    --prompts. Files that exist are never replaced.
    """
    if kind is NewKind.prompts:
        _write_prompts(out / name, like)
        return
    if like is not None:
        raise UsageError("--like goes with new prompts")
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


def _write_prompts(folder: Path, like: str | None) -> None:
    from hopscope.runtime.prompting import template_files

    known = template_files.names()
    if like is not None and like not in known:
        raise UsageError(f"--like {like}: choose from {', '.join(known)}")
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another name, or remove it first")
    found = template_files.shipped(like or template_files.DEFAULT)
    for path, file in found.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(file.text, "utf-8")
    shown = str(folder) if folder.is_absolute() else f"./{folder}"
    render.note(f"wrote {counted(len(found), 'file')} to {shown}")
    command = f'hopscope run "Who?" -w ircot --prompts {shown}'
    render.out().print(render.plain(command), soft_wrap=True)
