"""Options of commands that measure: with what, and how it is shared."""

from collections.abc import Sequence
from typing import Annotated

import typer

from hopscope.cli.appraise import METERS, RULES
from hopscope.cli.help import MEASURING

ALL = "all"
NONE = "none"

Meters = Annotated[
    list[str] | None,
    typer.Option(
        "--meter",
        metavar="METER",
        help="What is measured: seper, seper_hard, grogu, semantic_entropy; repeatable. By default "
        "the first three.",
        envvar="HOPSCOPE_METER",
        rich_help_panel=MEASURING,
    ),
]
MetersOrNone = Annotated[
    list[str] | None,
    typer.Option(
        "--meter",
        metavar="METER",
        help="What is measured: seper, seper_hard, grogu, semantic_entropy; repeatable. By default "
        "the first three; none only answers.",
        envvar="HOPSCOPE_METER",
        rich_help_panel=MEASURING,
    ),
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="How the gain is shared: trajectory, solo, leave-one-out, shapley or all; repeatable. "
        "By default all but solo.",
        envvar="HOPSCOPE_RULE",
        rich_help_panel=MEASURING,
    ),
]


def meters(given: Sequence[str] | None) -> tuple[str, ...]:
    """Their names; `-` will do for `_`, and `none` by itself is none."""
    chosen = tuple(dict.fromkeys(name.replace("-", "_") for name in given or METERS))
    return () if chosen == (NONE,) else chosen


def rules(given: Sequence[str] | None) -> tuple[str, ...]:
    """Their names; `-` will do for `_`, and `all` is all there are."""
    from hopscope.runtime import components
    from hopscope.tracing import credit

    chosen = tuple(dict.fromkeys(name.replace("-", "_") for name in given or RULES))
    return tuple(components.names(credit)) if ALL in chosen else chosen
