"""`hopscope show` and `hopscope ls`: what the database holds."""

from typing import Annotated

import typer

from hopscope.cli import render, run_table
from hopscope.cli.run import Database, Json


def show(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run's id or its beginning.")
    ] = None,
    db: Database = None,
    json: Json = False,
) -> None:
    """Show a stored run, the latest by default, with the credit of every step."""
    from hopscope.store.store import Store

    with Store.open(db) as store:
        found = store.load(run) if run else store.latest()
        credits = store.credits(found.id)
    run_table.show_run(found, credits, json=json)


def ls(
    limit: Annotated[
        int, typer.Option(min=1, help="How many runs, the newest first.", envvar="HOPSCOPE_LIMIT")
    ] = 20,
    db: Database = None,
    json: Json = False,
) -> None:
    """List stored runs, the newest first."""
    from hopscope.store.store import Store

    with Store.open(db) as store:
        summaries = store.runs(limit=limit)
    render.show_summaries(summaries, json=json)
