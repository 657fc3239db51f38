"""The calls that the credit of a run costs, known before the first of them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hopscope.api.views.grid import Column, Grid
from hopscope.api.views.render import out, plain
from hopscope.api.views.rows import Rows
from hopscope.runtime.types import Record, Usage

if TYPE_CHECKING:
    from rich.console import Console

    from hopscope.api.appraiser import Appraiser
    from hopscope.runtime.budget.prices import Price
    from hopscope.runtime.types import Run
    from hopscope.tracing.games.coalitions import Game

CHARACTERS = 4
"""Of a prompt, for each token: English text and the usual tokenizers."""


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


def credit_costs(
    run: "Run",
    appraiser: "Appraiser",
    games: "Sequence[Game]",
    calls: int | None,
    price: "Price",
) -> list[CreditCost]:
    """The cost of each meter. Nothing is measured.

    Args:
        calls: the credit budget; None for no limit.
    """
    from hopscope.runtime.ports import SamplingMeter
    from hopscope.runtime.prompting.prompts import short_answer
    from hopscope.tracing import credit_budget
    from hopscope.tracing.appraisal import applicable
    from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues

    costs = []
    for meter in appraiser.meters:
        values = EvidenceValues(run.question, meter)
        played = [Coalitions(game, values) for game in games]
        rules = [tuple(applicable(coalitions, appraiser.rules)) for coalitions in played]
        most = meter.samples if isinstance(meter, SamplingMeter) else 1
        all_of_it = credit_budget.unlimited(played, rules)
        limit = len(all_of_it) * most
        plan = credit_budget.plan(played, rules, limit if calls is None else calls, most)
        prompts = [short_answer(run.question.text, evidence) for evidence in plan.passages]
        lengths = [sum(len(message.content) for message in p.messages) for p in prompts]
        further = plan.calls - len(lengths) if calls is not None else 0
        characters = sum(lengths) + further * max(lengths, default=0)
        usage = Usage(
            calls=plan.calls,
            input_tokens=-(-characters // CHARACTERS),
            output_tokens=plan.calls * getattr(meter, "max_tokens", 1),
        )
        costs.append(
            CreditCost(
                run=run.id,
                meter=meter.name,
                players=sum(len(coalitions.players) for coalitions in played),
                contexts=len(plan.evidences),
                calls=plan.calls,
                unlimited=limit,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=None if price.model is None else price.of(usage),
                currency=price.currency,
                unaffordable={
                    name: reason for reasons in plan.reasons for name, reason in reasons.items()
                },
            )
        )
    return costs


def rows(costs: Iterable[CreditCost]) -> Rows[CreditCost]:
    """The costs as rows that print as a table."""
    return Rows(CreditCost, costs, _draw)


def _draw(costs: Sequence[CreditCost], console: "Console | None" = None) -> None:
    console = console or out()
    columns = [Column("run"), Column("meter")]
    columns += [
        Column(name, 1, right=True)
        for name in ("players", "contexts", "calls", "without", "tokens in", "tokens out", "cost")
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
        f"{calls:,} calls{money} ({full:,} without a budget); tokens in: about, tokens out: at most"
    )
    for reason in dict.fromkeys(r for cost in costs for r in cost.unaffordable.values()):
        console.print(plain(reason))
