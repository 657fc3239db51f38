"""`hopscope errors`: EoR's error decomposition of stored runs, and a comparison of systems."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hopscope.api import parts, stored
from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid
from hopscope.cli.options import metrics
from hopscope.cli.options.help import MEASURING, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import EntailmentSpec, ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.stored import Limit, OfWorkflow, RunIds
from hopscope.cli.views import measured
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.runtime.types import Measurement
    from hopscope.tracing.error_decomposition.report import ErrorComparison, ErrorReport, RunErrors


class By(StrEnum):
    workflow = "workflow"
    retriever = "retriever"
    reader = "reader"
    pool = "pool"


EACH = 10
"""The largest number of named runs that are printed one by one."""
SHARES = ("failure", "retriever", "extraction", "hallucination", "lucky_guess", "residual")


def errors(
    runs: RunIds = None,
    by: Annotated[
        By,
        typer.Option(
            help="The field that separates systems; pool compares the retrievers of EoR's runs.",
            envvar="HOPSCOPE_BY",
        ),
    ] = By.workflow,
    metric: metrics.MetricSpec = "exact_match",
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The lowest metric value of a right answer.",
            envvar="HOPSCOPE_THRESHOLD",
            rich_help_panel=MEASURING,
        ),
    ] = 0.8,
    max_words: Annotated[
        int,
        typer.Option(
            min=1,
            help="Leave out questions with a longer gold answer, as no document contains those.",
            envvar="HOPSCOPE_MAX_WORDS",
            rich_help_panel=SELECTION,
        ),
    ] = 5,
    workflow: OfWorkflow = None,
    limit: Limit = None,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
) -> None:
    """Separate retriever, extraction and hallucination errors and lucky guesses (EoR)."""
    reader = parts.thoughtful(reader, thinking)
    from hopscope.lab import run_reports

    found = run_reports.decompose_errors(
        stored.load(db, runs, workflow=workflow, limit=limit),
        metric,
        by=by.value,
        threshold=threshold,
        max_words=max_words,
        reader=reader,
        entailment=entailment,
        seed=seed,
    )
    if json:
        render.print_json(found.model_dump(mode="json"))
        return
    if runs and len(found.runs) <= EACH:
        for row in found.runs:
            _show_run(row)
    elif runs:
        render.note(f"{counted(len(found.runs), 'run')}: --json has the errors of each")
    _show_shares(found)
    if found.comparison:
        _show_comparison(found.comparison)
    if found.too_long:
        render.note(
            f"{counted(found.too_long, 'question')} left out: an answer exceeds {max_words} words"
        )
    measured.say_why(row.verdict for row in found.runs)


def _grid(rows: "Sequence[Sequence[str]]", *headings: str, telling: int = 1) -> Grid:
    """The first columns identify the row; further columns that do not fit follow below."""
    columns = [
        Column(heading, int(place >= telling), wraps=None if place >= telling else 14)
        for place, heading in enumerate(headings)
    ]
    return Grid(columns, [[Text(cell) for cell in row] for row in rows], stacked=True)


def _show_run(row: "RunErrors") -> None:
    """Print the errors of the run and of each step that called a model."""
    question = f"{render.plain(row.question)} → {render.plain(row.answer) or 'none'}"
    render.out().print(Text(f"{row.id[:12]}  {question}"))
    for located in row.errors:
        if located.errors is None:
            continue
        found = located.errors.model_dump()
        kinds = [name.replace("_", " ") for name in SHARES[1:5] if found[name]]
        kinds += [f"residual: {located.errors.residual}"] if located.errors.residual else []
        where = "whole run" if located.step is None else f"step {located.step}"
        said = ", ".join(kinds) or ("right" if located.errors.correct else "wrong")
        render.out().print(Text(f"  {where}: {said}"))


def _show_shares(found: "ErrorReport") -> None:
    headings = ("system", "questions", *(name.replace("_", " ") for name in SHARES))
    rows: list[list[str]] = []
    for system in found.systems:
        of = f"{system.measured} of {system.total}"
        rows.append([render.plain(system.system), of, *_cells(system.shares)])
        for index, shares in system.steps.items():
            rows.append([f"  step {index}", str(shares["failure"].n), *_cells(shares)])
    render.out().print(_grid(rows, *headings, telling=2))


def _cells(shares: "Mapping[str, Measurement]") -> list[str]:
    return [measured.value(shares[name]) for name in SHARES]


def _show_comparison(found: "ErrorComparison") -> None:
    """Print the share of a column's failures, and of its errors, that the row's system avoids."""
    right = found.right
    names = [render.plain(name) for name in right.systems]
    out = render.out()
    out.print(
        Text(f"\nrelative win ratios over {counted(right.questions, 'question')}", style="bold")
    )
    rows = [
        [name, *map(measured.value, [*row, wins, losses])]
        for name, row, wins, losses in zip(names, right.rwr, right.mrwr, right.mrlr, strict=True)
    ]
    out.print(_grid(rows, "wins over", *names, "MRWR", "MRLR"))
    out.print(Text(f"any of them right: {measured.value(right.oracle)}"))
    for kind, matrix in found.errors.items():
        title = f"\n{kind.replace('_', ' ')} avoided, over {counted(found.questions, 'question')}"
        out.print(Text(title, style="bold"))
        rows = [[name, *map(measured.value, row)] for name, row in zip(names, matrix, strict=True)]
        out.print(_grid(rows, "avoids", *names))
