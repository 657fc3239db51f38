"""`hopscope show` and `hopscope ls`: print stored runs."""

from typing import Annotated

import typer

from hopscope.api import stored
from hopscope.api.views import render, run_table
from hopscope.cli.options.help import SELECTION
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.spending import PricesFile

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
    prices: PricesFile = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Show a stored run with the credit of each step."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = stored.find(store, run)
        credits, appraisals = store.credits(found.id), store.appraisals(found.id)
    run_table.show_run(
        found, credits, appraisals, settings_hash=appraisal, prices=prices, json=json
    )


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
