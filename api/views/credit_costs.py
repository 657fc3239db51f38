"""The calls that the credit of a run costs, known before the first of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hopscope.api.views.grid import Column, Grid
from hopscope.api.views.render import out, plain
from hopscope.api.views.rows import Rows
from hopscope.runtime.types import Record

if TYPE_CHECKING:
    from rich.console import Console


class CreditCost(Record):
    """What one meter asks the reader for, to credit one run."""

    run: str
    meter: str
    players: int
    """Steps or passages that share the credit."""
    contexts: int
    """Evidence sets with at least one reply."""
    calls: int
    """Replies."""
    unlimited: int
    """Replies without a credit budget."""
    input_tokens: int
    """About so many prompt tokens at most, each further reply asked for by itself."""
    output_tokens: int
    """The most tokens of all replies."""
    cost: float | None
    """The most that these tokens cost; None without a price."""
    currency: str
    unaffordable: dict[str, str]
    """The rules that the credit budget does not suffice for, with the reason."""


def rows(costs: Iterable[CreditCost]) -> Rows[CreditCost]:
    """The costs as rows that print as a table."""
    return Rows(CreditCost, costs, _draw)


def _draw(costs: Sequence[CreditCost], console: "Console | None" = None) -> None:
    console = console or out()
    columns = [Column("run"), Column("meter")]
    columns += [
        Column(name, 1, right=True)
        for name in ("players", "contexts", "replies", "without", "tokens in", "tokens out", "cost")
    ]
    lines = [
        (
            plain(cost.run[:12]),
            plain(cost.meter),
            *(f"{n:,}" for n in (cost.players, cost.contexts, cost.calls, cost.unlimited)),
            f"{cost.input_tokens:,}",
            f"{cost.output_tokens:,}",
            "-" if cost.cost is None else f"{cost.cost:.4f} {cost.currency}",
        )
        for cost in costs
    ]
    console.print(Grid(columns, lines, stacked=True))
    calls, full = sum(c.calls for c in costs), sum(c.unlimited for c in costs)
    known = [cost.cost for cost in costs if cost.cost is not None]
    money = f", at most {sum(known):.4f} {costs[0].currency}" if len(known) == len(costs) else ""
    console.print(
        f"{calls:,} replies{money} ({full:,} without a budget), of one request or several to each "
        "context; tokens in: about, tokens out: at most"
    )
    for reason in dict.fromkeys(r for cost in costs for r in cost.unaffordable.values()):
        console.print(plain(reason))
