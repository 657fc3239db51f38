"""The options `--policy`, `--max-…` and `--prices` of commands that run workflows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hopscope.cli.options import code_options
from hopscope.cli.options.help import BUDGET

LARGEST = 10**15


def _finite(limit: float | None) -> float | None:
    if limit is not None and not limit < LARGEST:  # nor is NaN
        raise typer.BadParameter(
            f"give a number below {LARGEST:,}, or leave the option out for no limit"
        )
    return limit


def _limit(envvar: str, help: str) -> Any:
    return typer.Option(min=0, help=help, envvar=envvar, callback=_finite, rich_help_panel=BUDGET)


PolicySpec = Annotated[
    str,
    code_options.component(
        "--policy",
        metavar="POLICY",
        help="The policy that decides before each retrieval; see `hopscope list policies`. native "
        "leaves it to the workflow.",
        envvar="HOPSCOPE_POLICY",
        rich_help_panel=BUDGET,
    ),
]
MaxTokens = Annotated[
    int | None, _limit("HOPSCOPE_MAX_TOKENS", "The maximum tokens of prompts and replies.")
]
MaxCalls = Annotated[
    int | None, _limit("HOPSCOPE_MAX_CALLS", "The maximum calls to language models.")
]
MaxRetrievals = Annotated[int | None, _limit("HOPSCOPE_MAX_RETRIEVALS", "The maximum queries.")]
MaxSeconds = Annotated[float | None, _limit("HOPSCOPE_MAX_SECONDS", "The maximum seconds.")]
MaxCost = Annotated[
    float | None, _limit("HOPSCOPE_MAX_COST", "The maximum cost, by the price table.")
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
