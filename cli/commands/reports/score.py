"""`hopscope score`: score the answers of stored runs by any metrics."""

from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from hopscope.api import parts, stored
from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid
from hopscope.cli.options import code_options
from hopscope.cli.options.help import MEASURING
from hopscope.cli.options.measuring import JudgePrompts, Seed
from hopscope.cli.options.models import EntailmentSpec, ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.stored import Limit, OfWorkflow, RunIds
from hopscope.cli.views import measured

if TYPE_CHECKING:
    from hopscope.tracing.scoring.scores import JudgeCost, Scores

MetricSpecs = Annotated[
    list[str] | None,
    code_options.component(
        "--metric",
        "-m",
        metavar="METRIC",
        help="A metric of `hopscope list metrics`; repeatable. The first option follows a colon, "
        "as in f1:spaced or bertscore:FOLDER,layer=9. By default exact_match, f1 and "
        "contains. [env var: HOPSCOPE_METRICS, one a line]",
        rich_help_panel=MEASURING,
    ),
]


def score(
    runs: RunIds = None,
    metric: MetricSpecs = None,
    workflow: OfWorkflow = None,
    limit: Limit = None,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    prompts: JudgePrompts = None,
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Score the answers of stored runs, one by one and on average."""
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab import answer_metric, run_reports

    metrics = metric or code_options.lines("HOPSCOPE_METRICS") or run_reports.METRICS
    for named in metrics:
        answer_metric.check(named)
    found = run_reports.score(
        stored.load(db, runs, workflow=workflow, limit=limit),
        metrics,
        reader=reader,
        entailment=entailment,
        seed=seed,
        prompts=prompts,
    )
    if json:
        render.print_json(found.model_dump(mode="json"))
    else:
        _show(found)


def _told(cost: "JudgeCost") -> str:
    """What an answer took: calls, tokens, seconds and money."""
    each, spent = max(1, cost.answers), cost.usage
    tokens = "tokens not counted" if spent.uncounted else f"{spent.tokens / each:.1f} tokens"
    money = "" if cost.cost is None else f", {cost.cost / each:.6f} {cost.currency}"
    return (
        f"per answer: {spent.calls / each:.1f} calls, {tokens}, {cost.seconds / each:.2f} s{money}"
    )


def _show(found: "Scores") -> None:
    names = list(found.averages)
    figures = [Column(name, place, right=True) for place, name in enumerate(names, start=1)]
    columns = [Column("run"), Column("workflow", wraps=12), *figures]
    rows: list[tuple[str | Text, ...]] = [
        (
            row.id[:12],
            Text(render.plain(row.workflow)),
            *(render.number(row.scores[name].value) for name in names),
            Text(f"{render.plain(row.question)} → {render.plain(row.answer) or 'none'}"),
        )
        for row in found.runs
    ]
    render.out().print(Grid([*columns, Column("question → answer", wraps=28)], rows))
    for name, mean in found.averages.items():
        render.out().print(Text(f"{name}  {measured.mean(mean)}"))
    for name, cost in found.costs.items():
        render.out().print(Text(f"{name}  {_told(cost)}"))
    measured.say_why(m for row in found.runs for m in row.scores.values())
