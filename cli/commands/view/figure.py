"""`hopscope figure`: one picture of a stored run or experiment."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.api import parts, stored
from hopscope.api.views import render
from hopscope.cli.options import code_options, written
from hopscope.cli.options.help import MODELS, PLACES
from hopscope.cli.options.models import EntailmentSpec
from hopscope.cli.options.places import Database

if TYPE_CHECKING:
    from hopscope.view.pictures.specification import Spec
    from hopscope.view.run_figures import RunRecords


class Figure(StrEnum):
    belief = "belief"
    credit = "credit"
    synergy = "synergy"
    answers = "answers"
    workflows = "workflows"
    searches = "searches"
    frontier = "frontier"
    trust = "trust"
    failures = "failures"


def figure(
    name: Annotated[
        Figure,
        typer.Argument(
            metavar="NAME",
            help="Of a run: belief, credit, synergy or answers. Of an experiment: workflows, "
            "searches, frontier, trust or failures.",
        ),
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|EXP", help="A run's id, its beginning or `last`; or an experiment's name."
        ),
    ] = stored.LAST,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            envvar="HOPSCOPE_FIGURE_OUT",
            help="The file; its ending says the form: .svg, .png or .pdf. By default NAME.svg.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    reader: Annotated[
        str,
        code_options.component(
            "--reader",
            metavar="READER",
            envvar="HOPSCOPE_FIGURE_READER",
            help="The reader that measured the run; it samples answers if none are stored.",
            rich_help_panel=MODELS,
        ),
    ] = parts.TINY,
    entailment: EntailmentSpec = "lexical",
    overwrite: written.Overwrite = False,
    db: Database = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            envvar="HOPSCOPE_JSON",
            help="Print the Vega-Lite specification with its data.",
        ),
    ] = False,
) -> None:
    """Draw one picture of a stored run or experiment, for a paper.

    Only answers may ask a model: the one that measured the run, where the run's answers are not
    stored.

    Needs the extra view: pip install 'hopscope[view]'.
    """
    from hopscope.store.store import Store
    from hopscope.view import drawing, experiment_figures, run_figures

    path = out or Path(f"{name.value}.svg")
    form = drawing.form_of(path)
    if not json:
        written.check_folder(path)
        written.check_free([path], overwrite=overwrite)
    with Store.open(db, create=False, reading=True) as store:
        if name is Figure.answers:
            found = run_figures.RunRecords.load(store, source)
            stored_answers = any(each.groups for each in found.full_report.contexts)
            spec = (
                run_figures.FIGURES[name.value](found)
                if stored_answers
                else _answers(found, reader, entailment)
            )
        elif name.value in run_figures.FIGURES:
            spec = run_figures.FIGURES[name.value](run_figures.RunRecords.load(store, source))
        else:
            records = experiment_figures.records_of(store, source)
            spec = experiment_figures.FIGURES[name.value](records)
    if json:
        render.print_json(spec)
        return
    path.write_bytes(drawing.draw(spec, form))
    render.note(f"{path}: {spec['description']}")


def _answers(records: "RunRecords", reader: str, entailment: str) -> "Spec":
    from hopscope.runtime.errors import UsageError
    from hopscope.view import sampled_answers

    if records.provenance is None:
        id = records.run.id[:12]
        raise UsageError(f"run {id} was not measured: `hopscope credit {id}` does")
    models = parts.reader(reader), parts.entailment(entailment)
    return sampled_answers.spec(records.run, records.provenance, *models)
