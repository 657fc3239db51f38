"""Options that several commands of `hopscope budget` take."""

from enum import StrEnum
from typing import Annotated

import typer

from hopscope.cli.options.help import BUDGET, MEASURING, SELECTION


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
        help="The worth of stopping: correctness of the answer there, or seper, the measured "
        "belief in the right answer.",
        envvar="HOPSCOPE_UTILITY",
        rich_help_panel=MEASURING,
    ),
]
CachedWeight = Annotated[
    float,
    typer.Option(
        "--cached",
        min=0,
        max=1,
        metavar="SHARE",
        help="Of an experiment: what a prompt token from a cache counts, from 0 to 1; by default "
        "as much as another. A draft whose prompt the reader has just read then costs little.",
        envvar="HOPSCOPE_BUDGET_CACHED",
        rich_help_panel=BUDGET,
    ),
]
