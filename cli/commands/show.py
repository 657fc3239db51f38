"""`hopscope show` and `hopscope ls`: print stored runs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.api import stored
from hopscope.api.credit_games import Over
from hopscope.api.views import render, run_table
from hopscope.api.views.rows import Rows
from hopscope.cli.options.help import MEASURING, SELECTION
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.spending import PricesFile

if TYPE_CHECKING:
    from hopscope.tracing.what_if.recall import Recall

RunSpec = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id or its beginning; by default the last run."),
]


def show(
    run: RunSpec = stored.LAST,
    appraisal: Annotated[
        str | None,
        typer.Option(
            "--appraisal",
            metavar="HASH",
            help="Show the credits of this appraisal, by the hash that `show` prints or its "
            "beginning; by default the latest of the whole run.",
            envvar="HOPSCOPE_APPRAISAL",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="STEP|p:KEY",
            help="Show the values without this step, by its number, or this passage, by p: and its "
            "key or title; repeat it to remove several at once.",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    interactions: Annotated[
        Over | None,
        typer.Option(
            "--interactions",
            metavar="steps|passages",
            help="Show for every two steps, or passages of a step, whether they need each other "
            "(positive) or one makes the other redundant (negative).",
            rich_help_panel=MEASURING,
        ),
    ] = None,
    prices: PricesFile = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Show a stored run with the credit of each step.

    --without and --interactions answer from the stored values of coalitions; no model is called.
    """
    from hopscope.store.store import Store
    from hopscope.tracing.reports.appraised import selected_provenance

    with Store.open(db, create=False, reading=True) as store:
        found = stored.find(store, run)
        credits, appraisals = store.credits(found.id), store.appraisals(found.id)
        games = store.games(found.id)
    if without or interactions:
        from hopscope.tracing.what_if.answers import recall

        values = recall(found, selected_provenance(credits, appraisal), games)
        _answer(values, without, interactions, json=json)
        return
    run_table.show_run(
        found,
        credits,
        appraisals,
        games,
        settings_hash=appraisal,
        prices=prices,
        json=json,
        answers=True,
    )


def _answer(
    recall: "Recall", without: list[str] | None, interactions: Over | None, *, json: bool
) -> None:
    from hopscope.api.views import what_if_table

    answers: dict[str, Rows[Any]] = {}
    if without:
        answers["without"] = what_if_table.without(recall, without)
    if interactions:
        answers["interactions"] = what_if_table.interactions(recall, interactions.value)
    if json:
        rows = {name: answer.to_dicts() for name, answer in answers.items()}
        render.print_json({"run": recall.run.id, **rows})
        return
    for answer in answers.values():
        answer.show()


def ls(
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            help="The number of runs.",
            envvar="HOPSCOPE_LIMIT",
            rich_help_panel=SELECTION,
        ),
    ] = 20,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            "-w",
            metavar="NAME",
            help="List runs of this workflow only.",
            envvar="HOPSCOPE_ONLY_WORKFLOW",
            rich_help_panel=SELECTION,
        ),
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """List stored runs, newest first."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        summaries = store.runs(limit=limit, workflow=workflow)
    render.show_summaries(summaries, json=json)
