"""The arguments and options that name stored runs."""

from typing import Annotated

import typer

from hopscope.cli.options.help import SELECTION

RunIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN|EXPERIMENT",
        help="Ids of runs or their beginnings, or names of experiments; by default all runs.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Use only the newest N runs, unless runs are named.",
        envvar="HOPSCOPE_LIMIT",
        rich_help_panel=SELECTION,
    ),
]
OfWorkflow = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="NAME",
        help="Use only runs of this workflow, unless runs are named.",
        envvar="HOPSCOPE_ONLY_WORKFLOW",
        rich_help_panel=SELECTION,
    ),
]
