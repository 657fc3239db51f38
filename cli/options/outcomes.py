"""Options of commands that read outcomes of arms on questions."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from hopscope.cli.options.help import BUDGET, SELECTION

if TYPE_CHECKING:
    from hopscope.lab.budget.outcomes import Cost, Outcomes, Unit
    from hopscope.runtime.budget.prices import Price
    from hopscope.tracing.learned.route_file import RouteFile


class Objective(StrEnum):
    steps = "steps"
    tokens = "tokens"
    seconds = "seconds"
    money = "money"


OutcomeFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--outcomes",
        metavar="FILE",
        help="In place of an experiment: JSON lines of questions with what each arm scored and "
        "cost; repeatable. [env var: HOPSCOPE_BUDGET_OUTCOMES, one a line]",
        rich_help_panel=SELECTION,
    ),
]
ArmNames = Annotated[
    str | None,
    typer.Option(
        "--arms",
        metavar="NAMES",
        help="With --outcomes: the arms to choose among, separated by commas; by default all.",
        envvar="HOPSCOPE_BUDGET_ARMS",
        rich_help_panel=SELECTION,
    ),
]
CostTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="ARM=N",
        help="With --outcomes: the cost of an arm where rows do not tell it, or SET:ARM=N in one "
        "set; repeatable. [env var: HOPSCOPE_BUDGET_COSTS, one a line]",
        rich_help_panel=BUDGET,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="For money: the reader whose prices rows' tokens are paid at, as in the table of "
        "prices: gpt-6-sol@api.openai.com.",
        envvar="HOPSCOPE_BUDGET_MODEL",
        rich_help_panel=BUDGET,
    ),
]
ObjectiveName = Annotated[
    Objective,
    typer.Option(
        "--objective",
        help="With --outcomes: the cost to save.",
        envvar="HOPSCOPE_BUDGET_OBJECTIVE",
        rich_help_panel=BUDGET,
    ),
]


def files(given: list[Path] | None) -> list[Path]:
    """The files of `--outcomes`, else of its environment variable."""
    from hopscope.api import parts

    return given or [Path(line) for line in parts.lines("HOPSCOPE_BUDGET_OUTCOMES")]


class Reading(NamedTuple):
    """Files of outcomes, and how to read them."""

    files: Sequence[Path]
    arms: Sequence[str]
    costs: "Sequence[Cost]"
    unit: "Unit"
    price: "Price | None" = None

    def outcomes(self, policy: "RouteFile | None" = None) -> "Outcomes":
        """The rows; what they do not tell of costs, the policy may have learned.

        Raises:
            UsageError: as `lab.budget.outcomes.read`.
            CorpusError: likewise.
        """
        from hopscope.lab.budget import outcomes

        learned: dict[tuple[str | None, str], float] = {}
        for name, costs in policy.costs.items() if policy else ():
            learned |= {(name or None, arm): value for arm, value in costs.items()}
        return outcomes.read(
            self.files,
            unit=self.unit,
            arms=self.arms,
            costs=self.costs,
            known=learned,
            price=self.price,
        )


def costs(given: list[str] | None) -> "list[Cost]":
    """The costs of `--cost`, else of its environment variable.

    Raises:
        UsageError: one is malformed.
    """
    from hopscope.api import parts
    from hopscope.lab.budget.outcomes import cost

    return [cost(text) for text in given or parts.lines("HOPSCOPE_BUDGET_COSTS")]


def price(model: str | None, table: Path | None) -> "Price | None":
    """The price of `--model`.

    Raises:
        UsageError: the table has none.
    """
    from hopscope.runtime.budget.prices import prices
    from hopscope.runtime.errors import UsageError

    if model is None:
        return None
    found = prices(table).of(model)
    if found.model is None:
        raise UsageError(f"--model {model} has no price: give one with --prices FILE")
    return found


def arms(given: str | None) -> list[str]:
    return [name.strip() for name in (given or "").split(",") if name.strip()]
