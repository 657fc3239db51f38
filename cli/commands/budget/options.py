"""Options that several commands of `hopscope budget` take."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.cli.options.help import MEASURING, SELECTION


class PolicyKind(StrEnum):
    value = "value"
    classifier = "classifier"
    tasr = "tasr"
    route = "route"


class Worth(StrEnum):
    correctness = "correctness"
    seper = "seper"


ArmName = Annotated[
    str | None,
    typer.Option(
        "--workflow",
        "-w",
        metavar="NAME",
        help="A workflow of the experiment; required if it has several.",
        envvar="HOPSCOPE_BUDGET_ARM",
        rich_help_panel=SELECTION,
    ),
]
Utility = Annotated[
    Worth,
    typer.Option(
        help="The worth of stopping: correctness of the short answer there, or seper, the "
        "measured belief in the right answer.",
        envvar="HOPSCOPE_UTILITY",
        rich_help_panel=MEASURING,
    ),
]
