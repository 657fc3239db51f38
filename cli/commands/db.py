"""`hopscope db`: upgrade, check, shrink and export the database of runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hopscope.api.stored import LAST, find
from hopscope.api.views import render
from hopscope.cli.options.places import Database, Json
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime.texts.counting import counted

app = typer.Typer(
    help="Upgrade, check, shrink and export the database of runs.", no_args_is_help=True
)

FAULTS_SHOWN = 20

STDOUT = Path("-")


@app.command()
def upgrade(db: Database = None, json: Json = False) -> None:
    """Create a database, or migrate it to this version's tables.

    Every command that opens a database does this first.
    """
    from hopscope.store.store import HEAD, Store

    with Store.open(db) as store:
        name, before = store.name, store.found
    if json:
        render.print_json({"database": name, "before": before, "after": HEAD})
    elif before == HEAD:
        render.say(f"{name} is up to date, at {HEAD}")
    else:
        render.say(f"{name} is now at {HEAD}, and {f'was at {before}' if before else 'new'}")


@app.command()
def check(db: Database = None, json: Json = False) -> None:
    """Recompute every hash; exit 1 if a run, a step, a credit or a text has changed."""
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        name, runs = store.name, len(store.ids())
        render.progress(f"checking {counted(runs, 'run')} in {name}")
        faults, unsealed = store.verify(), store.unsealed()
        render.progress("")
    if json:
        found = [fault._asdict() for fault in faults]
        render.print_json({"database": name, "runs": runs, "unsealed": unsealed, "faults": found})
    else:
        for fault in faults[:FAULTS_SHOWN]:
            render.say(f"{fault.table} {render.plain(fault.row)}: {render.plain(fault.problem)}")
        if len(faults) > FAULTS_SHOWN:
            render.say(f"... and {len(faults) - FAULTS_SHOWN} more: --json lists all")
        told = counted(len(faults), "fault") if faults else "no faults"
        render.say(f"{name}: {counted(runs, 'run')}, {told}")
        if unsealed:
            render.note(
                f"{counted(unsealed, 'run was', 'runs were')} written before runs had hashes: what "
                "changed there cannot be seen"
            )
    if faults:
        raise typer.Exit(1)


@app.command()
def vacuum(db: Database = None, json: Json = False) -> None:
    """Free the space of replaced and deleted runs."""
    from hopscope.store.store import Store

    with Store.open(db, create=False) as store:
        name, before = store.name, store.size()
        store.vacuum()
        after = store.size()
    if json:
        render.print_json({"database": name, "before_bytes": before, "after_bytes": after})
    else:
        render.say(f"{name} took {render.size(before)} and now takes {render.size(after)}")


@app.command()
def export(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write, JSON lines with one run each; - is stdout."
        ),
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help=f"Ids or their beginnings, or `{LAST}`; by default all runs."
        ),
    ] = None,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Write runs with their credits to a JSON lines file, unrounded."""
    from hopscope.lab.export.sheets import whole
    from hopscope.store.exporters import jsonl
    from hopscope.store.store import Store

    with Store.open(db, create=False, reading=True) as store:
        ids = None if runs is None else [find(store, run).id for run in runs]
        if out == STDOUT:
            jsonl.export(store, sys.stdout, run_ids=ids)
            return
        check_free([out], overwrite=overwrite)
        with whole(out) as unfinished, unfinished.open("w", encoding="utf-8") as file:
            written = jsonl.export(store, file, run_ids=ids)
    render.note(f"{counted(written, 'run')} written to {out}")
