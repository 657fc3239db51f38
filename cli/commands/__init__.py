"""The commands. A module is imported when one of its commands is mounted."""

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from hopscope import __version__
from hopscope.cli.options.configured import ConfiguredCommand, ConfiguredGroup

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
    "config": "parts.config:app",
    "doctor": "doctor:doctor",
    "index": "index:app",
    "budget": "budget.group:app",
    "db": "db:app",
    "export": "export:app",
    "push": "services.pushing:push",
    "pull": "services.pushing:pull",
    "labels": "services.labels:labels",
    "rewards": "reports.rewards:rewards",
    "eor": "eor:app",
    "lab": "lab.group:app",
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
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="HOPSCOPE_CONFIG",
            help="Read this configuration file, instead of the one found from the working folder "
            "up; also after the command.",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            envvar="HOPSCOPE_PROFILE",
            help="Use the tables [profile.NAME] of configuration files, too; also after the "
            "command.",
        ),
    ] = None,
) -> None:
    """Run multi-step RAG workflows and measure the worth of each retrieval."""


def mounted(names: Iterable[str]) -> typer.Typer:
    """A command line of these commands."""
    app = typer.Typer(
        name="hopscope",
        cls=ConfiguredGroup,
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
                inner.cls = ConfiguredCommand
            own = command.info.cls
            cls = own if isinstance(own, type) else ConfiguredGroup
            app.add_typer(command, name=name, cls=cls)
        else:
            app.command(name, cls=ConfiguredCommand)(command)
    return app
