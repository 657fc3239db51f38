"""The options `--policy`, `--max-…` and `--prices` of commands that run workflows."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli.options import code_options
from hopscope.cli.options.help import BUDGET


def _finite(limit: float | None) -> float | None:
    if limit is not None and not isfinite(limit):
        raise typer.BadParameter("give a number, or leave the option out for no limit")
    return limit


PolicySpec = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        callback=code_options.of_component,
        help="The policy that decides before each retrieval; see `hopscope list policies`. native "
        "leaves it to the workflow.",
        envvar="HOPSCOPE_POLICY",
        rich_help_panel=BUDGET,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="The maximum tokens of prompts and replies.",
        envvar="HOPSCOPE_MAX_TOKENS",
        rich_help_panel=BUDGET,
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="The maximum calls to language models.",
        envvar="HOPSCOPE_MAX_CALLS",
        rich_help_panel=BUDGET,
    ),
]
MaxRetrievals = Annotated[
    int | None,
    typer.Option(
        min=0, help="The maximum queries.", envvar="HOPSCOPE_MAX_RETRIEVALS", rich_help_panel=BUDGET
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="The maximum seconds.",
        envvar="HOPSCOPE_MAX_SECONDS",
        callback=_finite,
        rich_help_panel=BUDGET,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="The maximum cost, by the price table.",
        envvar="HOPSCOPE_MAX_COST",
        rich_help_panel=BUDGET,
        callback=_finite,
    ),
]
PricesFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="A TOML table of model prices, whose rows precede the shipped ones.",
        envvar="HOPSCOPE_PRICES",
        rich_help_panel=BUDGET,
    ),
]
