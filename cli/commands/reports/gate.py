"""`hopscope gate`: fail where an experiment is shown to be worse than its baseline."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.api import parts
from hopscope.api.views import render
from hopscope.cli.options import code_options
from hopscope.cli.options.help import MEASURING, PLACES, SELECTION
from hopscope.cli.options.measuring import Seed
from hopscope.cli.options.models import EntailmentSpec, ReaderSpec, ThinkingSpec
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime.texts.counting import counted

ORIGINAL = "original"


def gate(
    experiment: Annotated[
        str,
        typer.Argument(metavar="EXP", envvar="HOPSCOPE_EXPERIMENT", help="An experiment's name."),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="EXP",
            envvar="HOPSCOPE_GATE_BASELINE",
            help="The experiment to compare with, or a file of --write.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        code_options.component(
            "--metric",
            "-m",
            metavar="METRIC",
            help="A metric of `hopscope list metrics`, a meter of `hopscope list meters` (as seper "
            "or seper_delta), or answered, the share of runs that did not fail; repeatable. By "
            "default answered, f1, and seper if both have it. [env var: HOPSCOPE_METRICS, one a "
            "line]",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    drop: Annotated[
        list[float] | None,
        typer.Option(
            "--drop",
            min=0.0,
            envvar="HOPSCOPE_GATE_DROP",
            help="The allowed drop: one for each --metric in order, or one for all. By default 0.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    find: Annotated[
        float,
        typer.Option(
            "--find",
            envvar="HOPSCOPE_GATE_FIND",
            help="Tell the power to find a drop larger than the allowed one by this much.",
            rich_help_panel=MEASURING,
        ),
    ] = 0.05,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence",
            envvar="HOPSCOPE_GATE_CONFIDENCE",
            help="1 minus the chance of any false alarm, over all metrics and workflows.",
            rich_help_panel=MEASURING,
        ),
    ] = 0.95,
    workflow: Annotated[
        list[str] | None,
        code_options.component(
            "--workflow",
            "-w",
            metavar="LABEL",
            help="The workflow to compare; repeatable. By default all of both.",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    appraisal: Annotated[
        str,
        typer.Option(
            "--appraisal",
            metavar="HASH",
            envvar="HOPSCOPE_APPRAISAL",
            help="The measurements by meters: original (the experiment's own), latest, or a hash.",
            rich_help_panel=SELECTION,
        ),
    ] = ORIGINAL,
    resamples: Annotated[
        int,
        typer.Option(
            min=1000,
            envvar="HOPSCOPE_GATE_RESAMPLES",
            help="Resamples of the bootstrap and the randomisation test.",
            rich_help_panel=MEASURING,
        ),
    ] = 2000,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            metavar="FILE",
            help="Write the scores of EXP to this file as a baseline, and test nothing.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            envvar="HOPSCOPE_GATE_JUNIT",
            help="Write JUnit XML, replacing the file.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            envvar="HOPSCOPE_GATE_MARKDOWN",
            help="Write Markdown for a pull request, replacing the file.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    reader: ReaderSpec = parts.TINY,
    thinking: ThinkingSpec = None,
    entailment: EntailmentSpec = "lexical",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    db: Database = None,
    json: Json = False,
) -> None:
    """Fail where an experiment is shown to be worse than its baseline.

    Tests each metric of each workflow on the same questions, and tells the power of the test.
    Exit code 1: a metric fell by more than is allowed.
    """
    from hopscope.lab.gate import gate as gating
    from hopscope.runtime.errors import UsageError

    reader = parts.thoughtful(reader, thinking)
    metrics = metric or code_options.lines("HOPSCOPE_METRICS") or None
    if (write is None) == (baseline is None):
        raise UsageError("give --baseline EXP to compare, or --write FILE to make a baseline")
    if write is not None:
        check_free([write], overwrite=overwrite)
        found = gating.write_baseline(
            experiment,
            write,
            metrics=metrics,
            store=db,
            appraisal=appraisal,
            reader=reader,
            entailment=entailment,
        )
        render.say(
            f"{write}  {counted(len(found.questions), 'question')}, {', '.join(found.scores)}: "
            f"{', '.join(found.metrics)}"
        )
        return
    check_free([path for path in (junit, markdown) if path is not None], overwrite=True)
    report = gating.gate(
        experiment,
        baseline or "",
        metrics=_allowed(metrics, drop or [0.0]),
        drop=(drop or [0.0])[0],
        find=find,
        confidence=confidence,
        workflows=workflow or (),
        store=db,
        appraisal=appraisal,
        resamples=resamples,
        seed=seed,
        reader=reader,
        entailment=entailment,
    )
    for path, form in ((junit, report.junit), (markdown, report.markdown)):
        if path is not None:
            try:
                path.write_text(form(), encoding="utf-8")
            except OSError as error:
                raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    if json:
        render.print_json(report.model_dump(mode="json"))
    else:
        report.show()
    for row in report.rows:
        if row.verdict == "fell":
            render.note(row.summary)
    if not report.passed:
        raise typer.Exit(1)


def _allowed(metrics: list[str] | None, drops: list[float]) -> dict[str, float] | None:
    """The allowed drop of each metric; None for the default metrics."""
    from hopscope.runtime.errors import UsageError

    if len(drops) == 1 and metrics is None:
        return None
    metrics = metrics or []
    if len(drops) not in (1, len(metrics)):
        raise UsageError(
            f"--drop is given {len(drops)} times for {len(metrics)} --metric: give one for each, "
            "or one for all"
        )
    if len(set(metrics)) < len(metrics):
        raise UsageError("a --metric is given twice")
    return dict(zip(metrics, drops * len(metrics) if len(drops) == 1 else drops, strict=True))
