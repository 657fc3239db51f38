"""`hopscope config`: the values of options, and where they come from."""

import os
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid
from hopscope.cli.options import configuration
from hopscope.cli.options.configuration import Configuration
from hopscope.cli.options.configured import READ
from hopscope.cli.options.places import Json
from hopscope.runtime.choices import did_you_mean
from hopscope.runtime.errors import UsageError

app = typer.Typer(help="Show the values of options and where they come from.", no_args_is_help=True)

_PASSWORD = re.compile(r"(?<=://)([^:/@\s]*):[^@/\s]*@")
_SECRET = re.compile(
    r"(\b\w*(?:password|passwd|pwd|token|secret|api_?key)=)[^&,;\s]+", re.IGNORECASE
)


@app.callback()
def config() -> None:
    """Show the values of options and where they come from."""


@app.command()
def show(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="A command, such as run or budget fit, of which all options are shown; by default "
            "what files and variables set for any command.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the values of options and where they come from.

    A flag precedes a variable, a variable a file, the project's file your own. Passwords and tokens
    are not shown.
    """
    from hopscope.cli.commands import COMMANDS, mounted

    read: Configuration = context.meta[READ]
    words = tuple(command or ())
    known = dict(_commands(typer.main.get_command(mounted(COMMANDS)), ()))
    if words and words not in known:
        names = [" ".join(each) for each in known]
        raise UsageError(f"no command {' '.join(words)}{did_you_mean(' '.join(words), names)}")
    rows = [
        row
        for path, each in known.items()
        if not words or path == words
        for row in _rows(each, path, read)
        if words or row["source"] != "default"
    ]
    files = [file.name for file in read.files]
    if json:
        render.print_json({"files": files, "profile": read.profile, "options": rows})
        return
    render.note(f"files read: {', '.join(files) or 'none'}")
    columns = [Column(name, wraps=12) for name in ("command", "option", "value", "from")]
    cells = [[_text(row[key]) for key in ("command", "option", "value", "place")] for row in rows]
    if rows:
        render.out().print(Grid(columns, cells))
    refused = {(row["place"], row["option"]): row["refused"] for row in rows if row["refused"]}
    for (place, option), why in refused.items():
        render.note(f"{place}: {option}: {why}")


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands with options, by the words that name them."""
    if path and configuration.keys(command):
        yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def _rows(command: Any, path: tuple[str, ...], read: Configuration) -> Iterator[dict[str, Any]]:
    settings = read.settings(command, path)
    for parameter in configuration.by_name(command).values():
        key = next(key for key, each in configuration.keys(command).items() if each is parameter)
        setting = settings.get(parameter.name)
        row: dict[str, Any] = {"command": " ".join(path), "option": key}
        variable = next(filter(os.environ.get, configuration.variables(parameter)), None)
        if variable is not None:
            row |= {"value": os.environ[variable], "source": "variable", "place": variable}
        elif setting is not None:
            row |= {"value": setting.value, "source": "file", "place": setting.place}
        else:
            row |= {"value": _plain(parameter.default), "source": "default", "place": "default"}
        row["value"] = _safe(key, row["value"])
        row["refused"] = configuration.refusal(parameter, setting) if setting else None
        yield row


def _plain(value: Any) -> Any:
    if isinstance(value, Enum | Path):
        return str(value)
    return value


def _safe(key: str, value: Any) -> Any:
    """Without what opens doors."""
    if key == "token" and value:
        return "***"
    if isinstance(value, list | tuple):
        return [_safe(key, each) for each in value]
    if not isinstance(value, str):
        return value
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", value))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return render.plain("" if value is None else str(value))
