"""The `hopscope` command: mounts the commands and turns errors into messages and exit codes.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all right, 1 something
failed, 2 the command was used wrongly, 130 stopped by Ctrl-C. Nothing heavy is imported until
a command needs it, and of the commands themselves only the one that is asked for.
"""

import atexit
import gc
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from hopscope import __version__

COMMANDS = {
    "demo": "demo:demo",
    "run": "run:run_command",
    "resume": "resume:resume",
    "eval": "eval:eval_command",
    "show": "show:show",
    "credit": "credit:credit",
    "ls": "show:ls",
    "score": "score:score",
    "errors": "errors:errors",
    "erag": "erag:erag",
    "compare": "compare:compare",
    "list": "listing:list_components",
    "doctor": "doctor:doctor",
    "index": "index:app",
    "budget": "budget:app",
    "db": "db:app",
    "export": "export:app",
    "eor": "eor:app",
    "lab": "lab:app",
}
"""Each command's module in `hopscope.cli` and its name there, in the order of `--help`."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hopscope {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-step RAG workflows that tell what each retrieval was worth."""


def _app(names: Iterable[str]) -> typer.Typer:
    """A command line of these commands."""
    app = typer.Typer(
        name="hopscope",
        help="Multi-step RAG workflows that tell what each retrieval was worth.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"hopscope.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; our errors become one message on stderr."""
    from hopscope.runtime.errors import HopscopeError, UsageError

    # Imports make nothing that could be freed: looking for it as often as usual takes a fifth of
    # the time to start.
    gc.set_threshold(50_000)
    # Nor is there any use in looking through all that is left when the process ends, which takes a
    # quarter of the time of `ls`.
    atexit.register(gc.freeze)
    given = sys.argv[1:] if arguments is None else arguments
    named = [name for name in given[:1] if name in COMMANDS]
    try:
        _app(named or COMMANDS)(given)
    except HopscopeError as error:
        print(f"hopscope: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
