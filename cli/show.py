"""`hopscope show` and `hopscope ls`: what the database holds."""

from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import render, run_table
from hopscope.cli.run import Database, Json
from hopscope.cli.spending_options import PricesFile

if TYPE_CHECKING:
    from hopscope.runtime.types import Run
    from hopscope.store.store import Store


RunSpec = Annotated[
    str, typer.Argument(metavar="[RUN]", help="A run's id or its beginning; by default the last.")
]
LAST = "last"


def find(store: "Store", run: str) -> "Run":
    """The run of an id or the only one that begins so, or the `last`.

    Raises:
        UsageError: there is none, or several.
    """
    return store.latest() if run == LAST else store.load(run)


def show(
    run: RunSpec = LAST,
    appraisal: Annotated[
        str | None,
        typer.Option(
            "--appraisal",
            metavar="HASH",
            help="Show credits of these settings, by the hash that `show` prints or its beginning; "
            "by default those of the whole run measured last.",
            envvar="HOPSCOPE_APPRAISAL",
        ),
    ] = None,
    prices: PricesFile = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Show a stored run with the credit of every step."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        found = find(store, run)
        credits, appraisals = store.credits(found.id), store.appraisals(found.id)
    run_table.show_run(
        found, credits, appraisals, settings_hash=appraisal, prices=prices, json=json
    )


def ls(
    limit: Annotated[
        int, typer.Option(min=1, help="How many runs, the newest first.", envvar="HOPSCOPE_LIMIT")
    ] = 20,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow",
            "-w",
            metavar="W",
            help="List runs of this workflow only.",
            envvar="HOPSCOPE_ONLY_WORKFLOW",
        ),
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """List stored runs, the newest first."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        summaries = store.runs(limit=limit, workflow=workflow)
    render.show_summaries(summaries, json=json)
