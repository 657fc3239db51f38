"""`hopscope import`: store runs that other programs made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api.views import render
from hopscope.cli.options.help import PLACES, SELECTION
from hopscope.cli.options.places import Database, Json
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.store.importers.importing import ImportReport


def import_command(
    locations: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|FOLDER|URL",
            help="Files to import, folders of files, or the page of a project of Phoenix, as "
            "http://HOST:6006/projects/NAME, or of an experiment of MLflow, as "
            "http://HOST:5000/experiments/NAME.",
        ),
    ],
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="The format, with options as in messages:tools=search; see `hopscope list "
            "formats`. auto finds that of each file.",
            envvar="HOPSCOPE_IMPORT_FORMAT",
            rich_help_panel=SELECTION,
        ),
    ] = "auto",
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="EXP",
            help="The experiment that the runs belong to; by default the first file's name.",
            envvar="HOPSCOPE_NAME",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="TEXT",
            help="The name of the system that made them, in tables; by default the format's.",
            envvar="HOPSCOPE_IMPORT_LABEL",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="Right answers: JSON lines with question or id, and answers. They replace those "
            "of the files.",
            envvar="HOPSCOPE_IMPORT_GOLD",
            rich_help_panel=PLACES,
        ),
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Store runs that other programs made, so that credit and tables work on them.

    Each item that cannot be read is named with file and line and left out; then the exit code is 1.
    The same file again changes nothing.
    """
    from hopscope.store.importers.importing import import_runs

    report = import_runs(
        *locations,
        store=db,
        name=name,
        format=format,
        label=label,
        gold=gold,
        progress=lambda so_far: render.progress(counted(so_far.runs, "run")),
    )
    render.progress("")
    if json:
        render.print_json(report.to_dict())
    else:
        _show(report, gold)
    for note in report.notes:
        render.note(render.plain(note))
    for where, problem in report.problems:
        render.note(render.plain(f"not imported: {where}: {problem}"))
    if report.unread > len(report.problems):
        render.note(f"and {report.unread - len(report.problems):,} more")
    if report.unread:
        raise typer.Exit(1)


def _show(report: "ImportReport", gold: Path | None) -> None:
    formats = ", ".join(dict.fromkeys(report.formats.values())) or "no format"
    out = render.out()
    out.print(
        f"{counted(report.runs, 'run')} with {counted(report.retrievals, 'retrieval')} read "
        f"({formats}): {report.stored:,} new in the experiment {render.plain(report.experiment)}, "
        f"{report.known:,} there already",
        markup=False,
    )
    told = f"{report.answered:,} of them have right answers"
    if gold is not None:
        told += f", {report.matched:,} from {render.plain(gold.name)}"
    out.print(told, markup=False)
    if report.corrected:
        out.print(
            f"{report.corrected:,} of them have other right answers now: credits that were "
            "measured by the old ones are deleted",
            markup=False,
        )
    if report.parted:
        out.print(f"in {report.parted:,} of them glued passages were parted", markup=False)
    if report.unread:
        out.print(f"{counted(report.unread, 'item')} could not be read", markup=False)
