"""`hopscope resume`: continue a run that was stopped, killed or failed."""

from pathlib import Path
from typing import Annotated

import typer

from hopscope.api.views import render, run_table
from hopscope.cli.commands.run import ask
from hopscope.cli.options import code_options
from hopscope.cli.options.help import PLACES
from hopscope.cli.options.places import Database, Json, TraceContent, TraceFile


def resume(
    checkpoint: Annotated[
        Path,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="The file written by `hopscope run --checkpoint`.",
            envvar="HOPSCOPE_CHECKPOINT",
            rich_help_panel=PLACES,
        ),
    ],
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", help="A run's id or its beginning; by default the latest run."
        ),
    ] = None,
    file: code_options.Files = None,
    db: Database = None,
    trace_file: TraceFile = None,
    trace_content: TraceContent = True,
    json: Json = False,
) -> None:
    """Continue a stopped or failed run after its last step, with its own settings."""
    from hopscope.api.checkpoints import CheckpointSettings
    from hopscope.api.session import Session
    from hopscope.runtime import code_files
    from hopscope.runtime.execution.checkpoints import Checkpoints, whole

    with Checkpoints.open(checkpoint, create=False) as checkpoints:
        run_id, kept = checkpoints.find(run)
    with whole():
        begun = CheckpointSettings.model_validate_json(kept)
    if _show_finished(run_id, db, measured=bool(begun.meters), json=json):
        return
    code_files.check_recorded(
        [
            *(begun.reader, begun.corpus, begun.workflow, begun.entailment, begun.spend.policy),
            *(*begun.meters, *begun.rules, *begun.options.values()),
        ]
    )
    session = Session(
        reader=begun.reader,
        retriever=begun.corpus,
        store=db,
        workflow=begun.workflow,
        entailment=begun.entailment,
        samples=begun.samples,
        seed=begun.seed,
        meters=begun.meters,
        rules=begun.rules,
        options=begun.options,
        policy=begun.spend.policy,
        limits=begun.spend.limits,
        prices=begun.spend.prices,
        trace_file=trace_file,
        trace_content=trace_content,
    )
    code = ask(session, begun.question, checkpoint=checkpoint, run_id=run_id, json=json)
    raise typer.Exit(code)


def _show_finished(run_id: str, db: str | None, *, measured: bool, json: bool) -> bool:
    """Show the run if it is finished and, where `measured`, has credits. Returns True if so."""
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    with Store.open(db) as store:
        try:
            found, credits = store.load(run_id), store.credits(run_id)
            appraisals, games = store.appraisals(run_id), store.games(run_id)
        except UsageError:  # killed before it was stored
            return False
    if found.status != "ok" or (measured and not credits):
        return False
    run_table.show_run(found, credits, appraisals, games, json=json)
    render.note(f"run {run_id[:12]} is finished: nothing was left to do")
    return True
