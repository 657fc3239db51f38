"""`hopscope budget explain`: the decisions of a run."""

from typing import TYPE_CHECKING

from hopscope.api.stored import find
from hopscope.api.views import render
from hopscope.cli.commands.show import RunSpec
from hopscope.cli.options.places import Database, Json
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.tracing.reports.decisions import DecisionOutcome


def explain(run: RunSpec = "last", db: Database = None, json: Json = False) -> None:
    """Show each retrieval decision of a run, its reasons and its outcome."""
    from hopscope.store.store import Store
    from hopscope.tracing.reports import decisions
    from hopscope.tracing.reports.appraised import shown_credits

    with Store.open(db, create=False, reading=True) as store:
        found = find(store, run)
        credits = store.credits(found.id)
    rows = decisions.explain(found, shown_credits(credits))
    if json:
        render.print_json([row.model_dump(mode="json") for row in rows])
        return
    render.say(f"{found.id[:12]}  {found.workflow}  ended by {found.stop_reason or found.status}")
    if not rows and str(found.stop_reason).startswith("budget_"):
        render.note("no decisions: the limit was met within a step, not before a retrieval")
    elif not rows:
        render.note("no decisions: the run had no --policy and met no limit")
    for row in rows:
        render.say("\n".join(_told(row)))


def _told(row: "DecisionOutcome") -> list[str]:
    decided = row.decision
    choice = "retrieve" if decided.retrieve else "stop"
    lines = [
        f"{row.step:3d}  after {counted(decided.retrieval, 'retrieval')}: {choice}  "
        f"({render.plain(decided.policy)})",
        f"     {render.plain(decided.reason)}",
    ]
    if decided.gain is not None:
        between = f"[{decided.low:+.3f}, {decided.high:+.3f}]" if decided.low is not None else ""
        price = ""
        if decided.cost is not None and decided.price is not None:
            price = f" for {decided.cost:.0f} tokens at {decided.price:.2g} each"
        lines.append(f"     predicted gain {decided.gain:+.3f} {between}{price}")
    if decided.signals:
        told = ", ".join(f"{name} {value:.3g}" for name, value in decided.signals.items())
        lines.append(f"     {told}")
    realised = f"{row.gain:+.3f}" if row.gain is not None else f"unknown: {row.reason}"
    regret = f", regret {row.regret:.3f}" if row.regret is not None else ""
    lines.append(f"     realised gain {realised}, {row.tokens} tokens{regret}")
    lines.append(f"     {render.plain(row.sentence)}")
    return lines
