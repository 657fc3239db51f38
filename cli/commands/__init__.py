"""The commands. A module is imported when one of its commands is mounted."""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from hopscope import __version__
from hopscope.cli.options.help import Command, Group

COMMANDS = {
    "demo": "demo:demo",
    "run": "run:run_command",
    "resume": "resume:resume",
    "eval": "eval:eval_command",
    "import": "import_command:import_command",
    "show": "show:show",
    "credit": "credit:credit",
    "ls": "show:ls",
    "score": "reports.score:score",
    "errors": "reports.errors:errors",
    "erag": "reports.erag:erag",
    "compare": "reports.compare:compare",
    "gate": "reports.gate:gate",
    "figure": "view.figure:figure",
    "report": "view.report:report",
    "view": "view.view:view",
    "serve": "services.serving:app",
    "list": "listing:list_components",
    "new": "parts.new:new",
    "doctor": "doctor:doctor",
    "index": "index:app",
    "budget": "budget:app",
    "db": "db:app",
    "export": "export:app",
    "push": "services.pushing:push",
    "pull": "services.pushing:pull",
    "labels": "services.labels:labels",
    "rewards": "reports.rewards:rewards",
    "eor": "eor:app",
    "lab": "lab:app",
}
"""Each command's module in this folder and its name there, in the order of `--help`."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"hopscope {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run multi-step RAG workflows and measure the worth of each retrieval."""


def mounted(names: Iterable[str]) -> typer.Typer:
    """A command line of these commands."""
    app = typer.Typer(
        name="hopscope",
        cls=Group,
        help="Run multi-step RAG workflows and measure the worth of each retrieval.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"hopscope.cli.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            for inner in command.registered_commands:
                inner.cls = Command
            app.add_typer(command, name=name, cls=Group)
        else:
            app.command(name, cls=Command)(command)
    return app
