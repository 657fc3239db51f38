"""`hopscope erag`: evaluate the rankings of stored runs, passage by passage."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hopscope.api import parts, stored
from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid
from hopscope.cli.options import metrics
from hopscope.cli.options.help import MEASURING
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import EntailmentSpec, ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.stored import Limit, OfWorkflow, RunIds
from hopscope.cli.views import measured

if TYPE_CHECKING:
    from hopscope.tracing.erag.report import ERAGReport


def erag(
    runs: RunIds = None,
    metric: metrics.MetricSpec = "exact_match",
    cutoff: Annotated[
        list[int] | None,
        typer.Option(
            "--cutoff",
            min=1,
            help="Also measure the first N ranks; repeatable.",
            envvar="HOPSCOPE_CUTOFF",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="The maximum tokens of an answer.",
            envvar="HOPSCOPE_ERAG_MAX_TOKENS",
            rich_help_panel=MEASURING,
        ),
    ] = 32,
    workflow: OfWorkflow = None,
    limit: Limit = None,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Rate each retrieved passage by the reader's answer from it alone (eRAG)."""
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab import run_reports

    found = run_reports.erag(
        stored.load(db, runs, workflow=workflow, limit=limit),
        metric,
        cutoffs=cutoff or (),
        max_tokens=max_tokens,
        reader=reader,
        entailment=entailment,
        seed=seed,
    )
    render.progress("")
    if json:
        render.print_json(found.model_dump(mode="json"))
    else:
        _show(found)
    failed = [row for row in found.runs if row.error]
    for row in failed:
        render.note(f"run {row.id[:12]} is not measured: {render.plain(row.error)}")
    if failed:
        raise typer.Exit(1)


def _show(found: "ERAGReport") -> None:
    names = [name for name, mean in found.averages.items() if mean.value is not None]
    figures = [Column(name, place, right=True) for place, name in enumerate(names, start=2)]
    columns = [Column("run"), Column("ranking"), Column("passages", 1, right=True), *figures]
    rows: list[tuple[str | Text, ...]] = []
    for row in found.runs:
        for ranking in row.rankings:
            whole = ranking.step is None
            text = f"{render.plain(row.question)} → {render.plain(row.answer) or 'none'}"
            rows.append(
                (
                    row.id[:12],
                    "all shown" if whole else f"step {ranking.step}",
                    str(len(ranking.passages)),
                    *(render.number(ranking.measures[name].value) for name in names),
                    Text(text if whole else ""),
                )
            )
    out = render.out()
    out.print(Grid([*columns, Column("question → answer", wraps=28)], rows))
    out.print(Text("\nover runs, all passages shown", style="bold"))
    for name in names:
        agreement = found.agreement[name]
        out.print(
            Text(
                f"{name}  {measured.mean(found.averages[name])}  "
                f"τ {measured.value(agreement.kendall)}  ρ {measured.value(agreement.spearman)}"  # noqa: RUF001
            )
        )
    measured.say_why(m for row in found.runs for m in row.rankings[-1].measures.values())
