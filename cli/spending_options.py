"""The options `--policy`, `--max-…` and `--prices` of commands that run workflows."""

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli.help import BUDGET

NATIVE = "native"


def _finite(limit: float | None) -> float | None:
    if limit is not None and not isfinite(limit):
        raise typer.BadParameter("give a number, or leave the option out for no limit")
    return limit


PolicySpec = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Asked before each retrieval whether it is worth it: see `hopscope list policies`. "
        "native leaves it to the workflow.",
        envvar="HOPSCOPE_POLICY",
        rich_help_panel=BUDGET,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Tokens at most, of prompts and replies.",
        envvar="HOPSCOPE_MAX_TOKENS",
        rich_help_panel=BUDGET,
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Calls to language models at most.",
        envvar="HOPSCOPE_MAX_CALLS",
        rich_help_panel=BUDGET,
    ),
]
MaxRetrievals = Annotated[
    int | None,
    typer.Option(
        min=0, help="Queries at most.", envvar="HOPSCOPE_MAX_RETRIEVALS", rich_help_panel=BUDGET
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Seconds at most.",
        envvar="HOPSCOPE_MAX_SECONDS",
        callback=_finite,
        rich_help_panel=BUDGET,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Money at most, by the table of prices.",
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
        help="What models cost, as TOML; its rows stand before those of the shipped table.",
        envvar="HOPSCOPE_PRICES",
        rich_help_panel=BUDGET,
    ),
]
