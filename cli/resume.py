"""`hopscope resume`: go on with a run that was stopped, killed or failed."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.cli import render, run_table
from hopscope.cli.run import Database, Json, TraceContent, TraceFile, execute


def resume(
    checkpoint: Annotated[
        Path,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="The file that `hopscope run --checkpoint` wrote.",
            envvar="HOPSCOPE_CHECKPOINT",
        ),
    ],
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run's id or its beginning; by default the latest."),
    ] = None,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Go on with a run after its last step, with the settings it was begun with."""
    from hopscope.cli.checkpoints import Settings
    from hopscope.runtime.checkpoints import Checkpoints, whole

    with Checkpoints.open(checkpoint, create=False) as checkpoints:
        run_id, kept = checkpoints.find(run)
    with whole():
        begun = Settings.model_validate_json(kept)
    if _show_finished(run_id, db, json=json):
        return
    code = execute(
        begun.question,
        workflow=begun.workflow,
        options=begun.options,
        corpus=begun.corpus,
        reader=begun.reader,
        entailment=begun.entailment,
        samples=begun.samples,
        seed=begun.seed,
        spend=begun.spend,
        db=db,
        trace_file=trace_file,
        trace_content=trace_content,
        json=json,
        checkpoint=checkpoint,
        run_id=run_id,
    )
    raise typer.Exit(code)


def _show_finished(run_id: str, db: str | None, *, json: bool) -> bool:
    """Show a run that is finished and appraised; whether it is."""
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    with Store.open(db) as store:
        try:
            found, credits = store.load(run_id), store.credits(run_id)
            appraisals = store.appraisals(run_id)
        except UsageError:  # killed before it was stored
            return False
    if found.status != "ok" or not credits:
        return False
    run_table.show_run(found, credits, appraisals, json=json)
    render.note(f"run {run_id[:12]} is finished: nothing was left to do")
    return True
