"""The options `--policy`, `--max-…` and `--prices` of commands that run workflows."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli.help import BUDGET

NATIVE = "native"

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
        min=0, help="Seconds at most.", envvar="HOPSCOPE_MAX_SECONDS", rich_help_panel=BUDGET
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Money at most, by the table of prices.",
        envvar="HOPSCOPE_MAX_COST",
        rich_help_panel=BUDGET,
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
