"""`hopscope score`: how good the answers of stored runs are, by any metrics."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hopscope.cli import measured, metrics, render, stored, wiring
from hopscope.cli.grid import Column, Grid
from hopscope.cli.run import Database, EntailmentSpec, Json, ReaderSpec, Seed, ThinkingSpec

if TYPE_CHECKING:
    from hopscope.tracing.scoring import Scores

DEFAULT = ["exact_match", "f1", "contains"]

MetricSpecs = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        metavar="NAME[:VALUE]",
        help="A metric of `hopscope list metrics`; repeatable. The value is for its first option, "
        "as in f1:spaced or bertscore:FOLDER. By default exact_match, f1 and contains. "
        "[env var: HOPSCOPE_METRICS, one a line]",
    ),
]


def score(
    runs: stored.RunIds = None,
    metric: MetricSpecs = None,
    workflow: stored.OfWorkflow = None,
    limit: stored.Limit = None,
    reader: ReaderSpec = wiring.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Score the answers of stored runs, one by one and on average."""
    reader = wiring.thoughtful(reader, thinking)
    from hopscope.tracing import scoring

    asked = list(dict.fromkeys(metric or wiring.lines("HOPSCOPE_METRICS") or DEFAULT))
    built = {spec: metrics.metric(spec, reader=reader, entailment=entailment) for spec in asked}
    found = scoring.score(stored.load(db, runs, workflow=workflow, limit=limit), built, seed=seed)
    if json:
        render.print_json(found.model_dump(mode="json"))
    else:
        _show(found)


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
    measured.say_why(m for row in found.runs for m in row.scores.values())
