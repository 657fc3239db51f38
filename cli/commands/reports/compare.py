"""`hopscope compare`: tables over experiments, with intervals and tests."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.commands.reports.score import MetricSpecs
from hopscope.cli.options import code_options
from hopscope.cli.options.help import BUDGET, MEASURING, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import EntailmentSpec, ThinkingSpec
from hopscope.cli.options.places import Database, Json
from hopscope.lab.table_forms import terminal

ORIGINAL = "original"


class By(StrEnum):
    workflow = "workflow"
    experiment = "experiment"
    reader = "reader"
    retriever = "retriever"
    seed = "seed"
    hops = "hops"
    kind = "kind"


Names = Annotated[
    list[str],
    typer.Argument(metavar="EXP", envvar="HOPSCOPE_EXPERIMENTS", help="Names of experiments."),
]


def compare(
    experiments: Names,
    by: Annotated[
        By | None,
        typer.Option(
            metavar="FIELD",
            envvar="HOPSCOPE_COMPARE_BY",
            help="Split rows by workflow, experiment, reader, retriever, seed, hops or kind. By "
            "default by experiment, if there are several; by workflow always.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        code_options.component(
            "--table",
            "-t",
            metavar="NAME",
            help="A table of `hopscope list tables`, or all; repeatable. By default overview and "
            "differences. [env var: HOPSCOPE_TABLES, one a line]",
            rich_help_panel=None,
        ),
    ] = None,
    metric: MetricSpecs = None,
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            envvar="HOPSCOPE_THRESHOLD",
            help="The lowest value of the first metric of a right answer.",
            rich_help_panel=MEASURING,
        ),
    ] = 0.8,
    resamples: Annotated[
        int,
        typer.Option(
            min=100,
            envvar="HOPSCOPE_RESAMPLES",
            help="Bootstrap resamples over questions.",
            rich_help_panel=MEASURING,
        ),
    ] = 2000,
    reader: Annotated[
        str | None,
        code_options.component(
            "--reader",
            metavar="READER",
            envvar="HOPSCOPE_COMPARE_READER",
            help="Label each passage by this reader's answer from it alone, which adds eRAG's "
            "measures to the table correlations. Without it, no model is asked.",
        ),
    ] = None,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    appraisal: Annotated[
        str,
        typer.Option(
            "--appraisal",
            metavar="HASH",
            envvar="HOPSCOPE_APPRAISAL",
            help="The measurements to show: original (made by the experiment), latest, or a hash "
            "from the table's note.",
            rich_help_panel=SELECTION,
        ),
    ] = ORIGINAL,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            metavar="FILE",
            envvar="HOPSCOPE_PRICES",
            help="A TOML table of model prices.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    seed: Seed = 0,
    db: Database = None,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with unrounded numbers.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX with booktabs.")] = False,
) -> None:
    """Compare the workflows of experiments: means, paired differences, credit."""
    from hopscope.lab import comparison
    from hopscope.runtime.errors import UsageError

    formats = {"json": json, "csv": csv, "markdown": markdown, "latex": latex}
    asked = [name for name, wanted in formats.items() if wanted]
    reader = reader and parts.thoughtful(reader, thinking)
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} exclude each other")
    found = comparison.compare(
        *experiments,
        store=db,
        tables=table or code_options.lines("HOPSCOPE_TABLES") or comparison.TABLES,
        by=None if by is None else by.value,
        metrics=metric or code_options.lines("HOPSCOPE_METRICS") or comparison.DEFAULT_METRICS,
        threshold=threshold,
        resamples=resamples,
        seed=seed,
        appraisal=appraisal,
        labels=reader,
        reader=reader or parts.TINY,
        entailment=entailment,
        prices=prices,
    )
    render.progress("")
    terminal.show(found.tables, asked[0] if asked else None)
